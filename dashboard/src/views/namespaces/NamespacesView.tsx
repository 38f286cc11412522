import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { answer, api, type Schemas } from "../../api/client";
import { useMay } from "../../api/who";
import { useLiveQueries } from "../../live/useLive";
import { Button } from "../../ui/Button";
import { ConfirmDialog } from "../../ui/Dialog";
import { Empty } from "../../ui/Empty";
import { ErrorBox } from "../../ui/ErrorBox";
import { TextField } from "../../ui/Field";
import { Loading } from "../../ui/Loading";
import { JobCount, jobsLink } from "../../ui/links";
import { notify } from "../../ui/Notices";
import { Page } from "../../ui/Page";
import { PlainTable } from "../../ui/PlainTable";

type Load = Schemas["NamespaceLoad"];

/** The namespaces: what runs and waits in each, and its weight where namespaces share workers. */
export function NamespacesView() {
  const found = useQuery({
    queryKey: ["namespaces", "loads"],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/namespaces/loads", { signal })),
  });
  useLiveQueries(["jobs", "queues"], ["namespaces"]);
  const namespaces = found.data?.namespaces ?? [];
  return (
    <Page title="Namespaces">
      {found.error && <ErrorBox error={found.error} onRetry={() => void found.refetch()} />}
      {found.isPending && <Loading />}
      {found.data && namespaces.length === 0 && (
        <Empty title="No namespaces yet">A namespace is there once a job has named it.</Empty>
      )}
      {namespaces.length > 0 && <NamespaceTable namespaces={namespaces} />}
    </Page>
  );
}

function NamespaceTable({ namespaces }: { namespaces: readonly Load[] }) {
  const weighs = useMay("manage-queues");
  return (
    <PlainTable
      label="Namespaces"
      head={["Namespace", "Running", "Ready to run", "Failed", ...(weighs ? ["Weight", ""] : [])]}
      numbers={[1, 2, 4]}
      rows={namespaces.map(({ name, running, ready, more, weight }) => ({
        key: name,
        cells: [
          <Link key="name" {...jobsLink({ namespace: name })}>
            {name}
          </Link>,
          <JobCount
            key="running"
            value={running}
            filter={{ namespace: name, state: ["assigned", "running", "canceling", "timed_out"] }}
          />,
          <JobCount
            key="ready"
            value={ready}
            atLeast={more}
            filter={{ namespace: name, state: ["queued"] }}
          />,
          <Link key="failed" {...jobsLink({ namespace: name, state: ["failed"] })}>
            show
          </Link>,
          ...(weighs ? [weight ?? 1, <Weigh key="weight" name={name} weight={weight ?? 1} />] : []),
        ],
      }))}
    />
  );
}

function Weigh({ name, weight }: { name: string; weight: number }) {
  const client = useQueryClient();
  const [open, setOpen] = useState(false);
  const [value, setValue] = useState(String(weight));
  async function change(): Promise<void> {
    await answer(
      api.POST("/api/v1/namespaces/{name}/weight", {
        params: { path: { name } },
        body: { weight: Number(value) },
      }),
    );
    notify(`Namespace ${name} has weight ${value}`);
    await client.invalidateQueries({ queryKey: ["namespaces"] });
  }
  return (
    <>
      <Button small aria-label={`Change the weight of ${name}`} onClick={() => setOpen(true)}>
        Change
      </Button>
      {open && (
        <ConfirmDialog
          title={`Weight of ${name}`}
          confirm="Set the weight"
          onConfirm={change}
          onClose={() => setOpen(false)}
        >
          <TextField
            label="Weight"
            hint="Its share where namespaces take turns (fair_share); 1 unless set."
            type="number"
            min={1}
            value={value}
            onChange={(event) => setValue(event.target.value)}
          />
        </ConfirmDialog>
      )}
    </>
  );
}
