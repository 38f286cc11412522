import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api, type Schemas } from "../../api/client";
import { useMay } from "../../api/who";
import { useLiveQueries } from "../../live/useLive";
import { useAsOf } from "../../shell/asOf";
import { Button } from "../../ui/Button";
import { Empty } from "../../ui/Empty";
import { ErrorBox, FILTER_HINT } from "../../ui/ErrorBox";
import { TextField } from "../../ui/Field";
import { type ActiveFilter, FilterBar } from "../../ui/FilterBar";
import { counted } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import { Page, Section } from "../../ui/Page";
import { lookOf } from "../../ui/states";
import { BulkWorkers } from "./BulkWorkers";
import { EnrolDialog } from "./EnrolDialog";
import { KindGrid } from "./KindGrid";
import { PastWorkers } from "./PastWorkers";
import { filterOf, type WorkersSearch, workersRoute } from "./route";
import { WorkerTiles } from "./WorkerTiles";

export type FleetPage = Schemas["FleetPage"];
const PAGE = 500;

/** All workers: how many there are of each kind in each state, and each as a tile. */
export function WorkersView() {
  const asOf = useAsOf();
  return asOf === undefined ? <PresentWorkers /> : <PastWorkers asOf={asOf} />;
}

function PresentWorkers() {
  const search = workersRoute.useSearch();
  const navigate = workersRoute.useNavigate();
  const [enrolling, setEnrolling] = useState(false);
  const mayEnrol = useMay("manage-workers");
  const found = useInfiniteQuery({
    queryKey: ["fleet", search],
    queryFn: ({ pageParam, signal }) =>
      answer(
        api.GET("/api/v1/fleet", {
          signal,
          params: { query: { ...filterOf(search), after: pageParam, limit: PAGE } },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    placeholderData: (before) => before,
  });
  useLiveQueries(["workers"], ["fleet"]);
  const pages = found.data?.pages ?? [];
  const first = pages[0];
  const workers = pages.flatMap((page) => page.workers);
  const change = (next: Partial<WorkersSearch>) =>
    void navigate({ search: (before) => ({ ...before, ...next }), replace: true });
  const enrol = mayEnrol && (
    <Button kind="primary" icon="submit" onClick={() => setEnrolling(true)}>
      Enrol a worker
    </Button>
  );
  return (
    <Page
      title="Workers"
      actions={
        <>
          <BulkWorkers search={search} />
          {enrol}
        </>
      }
      facts={first && <span>{counted(sum(first.kinds), "worker")}</span>}
    >
      <Filters search={search} onChange={change} />
      {found.error && (
        <ErrorBox error={found.error} hint={FILTER_HINT} onRetry={() => void found.refetch()} />
      )}
      {!first && !found.error && <Loading />}
      {first && sum(first.kinds) > 0 && (
        <Section title="By kind and state">
          <KindGrid kinds={first.kinds} search={search} />
        </Section>
      )}
      {first && (
        <Section title={titleOf(first, search)}>
          {workers.length > 0 ? <WorkerTiles workers={workers} /> : <NoWorkers search={search} />}
          {found.hasNextPage && (
            <div>
              <Button busy={found.isFetchingNextPage} onClick={() => void found.fetchNextPage()}>
                Show more ({counted(first.total - workers.length, "worker")} left)
              </Button>
            </div>
          )}
        </Section>
      )}
      {enrolling && <EnrolDialog onClose={() => setEnrolling(false)} />}
    </Page>
  );
}

function Filters(props: {
  search: WorkersSearch;
  onChange: (next: Partial<WorkersSearch>) => void;
}) {
  const { search, onChange } = props;
  const [clause, setClause] = useState("");
  const requires = search.requires ?? [];
  const active: ActiveFilter[] = [
    ...(search.state ?? []).map((state) => ({
      key: `state ${state}`,
      label: `state: ${lookOf(state).label}`,
      onRemove: () => onChange({ state: search.state?.filter((one) => one !== state) }),
    })),
    ...(["kind", "pool"] as const)
      .filter((name) => search[name])
      .map((name) => ({
        key: name,
        label: `${name}: ${search[name]}`,
        onRemove: () => onChange({ [name]: undefined }),
      })),
    ...requires.map((text) => ({
      key: `requires ${text}`,
      label: text,
      onRemove: () => onChange({ requires: requires.filter((one) => one !== text) }),
    })),
  ];
  return (
    <FilterBar
      active={active}
      onClear={() =>
        onChange({ state: undefined, kind: undefined, pool: undefined, requires: undefined })
      }
    >
      <TextField
        label="Name"
        hideLabel
        placeholder="Part of a name"
        value={search.name ?? ""}
        onChange={(event) => onChange({ name: event.target.value || undefined })}
      />
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (clause) onChange({ requires: [...requires, clause] });
          setClause("");
        }}
      >
        <TextField
          label="Offers, as jobs require it"
          hideLabel
          placeholder="memory>=4GiB"
          value={clause}
          onChange={(event) => setClause(event.target.value)}
        />
      </form>
    </FilterBar>
  );
}

function NoWorkers({ search }: { search: WorkersSearch }) {
  const filtered = Object.values(search).some((value) => value !== undefined);
  if (filtered)
    return (
      <Empty title="No worker matches these filters">
        <p>Remove a filter to see more.</p>
      </Empty>
    );
  return (
    <Empty title="No workers yet">
      Enrol one with the button above, or start one on this machine with <code>windlass up</code>.
    </Empty>
  );
}

function titleOf(page: FleetPage, search: WorkersSearch): string {
  const states = (search.state ?? []).map((state) => lookOf(state).label).join(" or ");
  const words = counted(page.total, states ? `${states} worker` : "worker");
  return search.kind ? `${words} of ${search.kind}` : words;
}

function sum(kinds: FleetPage["kinds"]): number {
  let total = 0;
  for (const counts of Object.values(kinds)) {
    for (const one of Object.values(counts)) total += one;
  }
  return total;
}
