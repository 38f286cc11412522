import { useQuery } from "@tanstack/react-query";
import { answer, api } from "../../api/client";
import { Empty } from "../../ui/Empty";
import { ErrorBox, FILTER_HINT } from "../../ui/ErrorBox";
import { counted } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import { WorkerLink } from "../../ui/links";
import { Page } from "../../ui/Page";
import { PlainTable } from "../../ui/PlainTable";
import { StateBadge } from "../../ui/StateBadge";
import { workersRoute } from "./route";

/** The workers as they were at a moment, from the events about them. */
export function PastWorkers({ asOf }: { asOf: string }) {
  const search = workersRoute.useSearch();
  const found = useQuery({
    queryKey: ["workers", "past", asOf],
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/workers", { signal, params: { query: { as_of: asOf } } })),
  });
  const workers = (found.data?.workers ?? []).filter(
    (worker) =>
      (!search.state || search.state.includes(worker.status)) &&
      (!search.name || worker.name.includes(search.name)),
  );
  return (
    <Page title="Workers" facts={found.data && <span>{counted(workers.length, "worker")}</span>}>
      {found.error && (
        <ErrorBox error={found.error} hint={FILTER_HINT} onRetry={() => void found.refetch()} />
      )}
      {found.isLoading && <Loading />}
      {found.data && workers.length === 0 && <Empty title="No workers at that time" />}
      {workers.length > 0 && (
        <PlainTable
          label="Workers at that time"
          head={["Worker", "State", "Jobs", "Slots", "Last change"]}
          numbers={[2, 3]}
          rows={workers.map((worker) => ({
            key: String(worker.id),
            cells: [
              <WorkerLink key="name" name={worker.name} />,
              <StateBadge key="state" state={worker.status} />,
              <WorkerLink key="held" name={worker.name}>
                {worker.held}
              </WorkerLink>,
              worker.slots,
              worker.reason ?? "–",
            ],
          }))}
        />
      )}
    </Page>
  );
}
