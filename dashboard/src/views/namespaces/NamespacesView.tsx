import { useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { answer, api, type Schemas } from "../../api/client";
import { useMay } from "../../api/who";
import { Button } from "../../ui/Button";
import { ConfirmDialog } from "../../ui/Dialog";
import { Empty } from "../../ui/Empty";
import { ErrorBox } from "../../ui/ErrorBox";
import { TextField } from "../../ui/Field";
import { count } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import { jobsLink } from "../../ui/links";
import { notify } from "../../ui/Notices";
import { Page } from "../../ui/Page";
import { PlainTable } from "../../ui/PlainTable";

type JobCount = Schemas["JobCount"];
const COUNTED = 50; // namespaces whose jobs are counted at once
const STATES = ["queued", "running", "failed"] as const;

/** The namespaces: how many jobs each has, and its weight where namespaces share workers. */
export function NamespacesView() {
  const found = useQuery({
    queryKey: ["namespaces"],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/namespaces", { signal })),
  });
  const mayWeigh = useMay("manage-queues");
  const weights = useQuery({
    queryKey: ["namespaces", "weights"],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/namespaces/weights", { signal })),
    enabled: mayWeigh,
  });
  const names = found.data?.namespaces ?? [];
  const set = new Map(weights.data?.namespaces.map((one) => [one.name, one.weight]));
  return (
    <Page title="Namespaces">
      {found.error && <ErrorBox error={found.error} onRetry={() => void found.refetch()} />}
      {found.isPending && <Loading />}
      {found.data && names.length === 0 && (
        <Empty title="No namespaces yet">A namespace is there once a job has named it.</Empty>
      )}
      {names.length > 0 && <NamespaceTable names={names} weights={mayWeigh ? set : undefined} />}
    </Page>
  );
}

function NamespaceTable(props: { names: readonly string[]; weights?: Map<string, number> }) {
  const { names, weights } = props;
  const wanted = names
    .slice(0, COUNTED)
    .flatMap((namespace) => STATES.map((state) => ({ namespace, state })));
  const counts = useQueries({
    queries: wanted.map(({ namespace, state }) => ({
      queryKey: ["namespaces", "count", namespace, state],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        answer(
          api.GET("/api/v1/jobs/count", {
            signal,
            params: { query: { namespace, state: [state] } },
          }),
        ),
    })),
  });
  const cell = (namespace: string, state: string) => {
    const at = wanted.findIndex((one) => one.namespace === namespace && one.state === state);
    return (
      <Link key={state} {...jobsLink({ namespace, state: [state] })}>
        {shown(counts[at]?.data)}
      </Link>
    );
  };
  return (
    <PlainTable
      label="Namespaces"
      head={["Namespace", "Queued", "Running", "Failed", ...(weights ? ["Weight", ""] : [])]}
      numbers={[1, 2, 3, 4]}
      rows={names.map((name) => ({
        key: name,
        cells: [
          <Link key="name" {...jobsLink({ namespace: name })}>
            {name}
          </Link>,
          ...STATES.map((state) => cell(name, state)),
          ...(weights
            ? [
                weights.get(name) ?? 1,
                <Weigh key="weight" name={name} weight={weights.get(name) ?? 1} />,
              ]
            : []),
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
    await client.invalidateQueries({ queryKey: ["namespaces", "weights"] });
  }
  return (
    <>
      <Button small aria-label={`Weight of ${name}`} onClick={() => setOpen(true)}>
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

function shown(found: JobCount | undefined): string {
  if (!found) return "…";
  if (found.exact) return count(found.count);
  return found.estimate ? `about ${count(found.estimate)}` : `${count(found.count)}+`;
}
