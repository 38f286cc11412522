import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ColumnDef } from "@tanstack/react-table";
import { useMemo, useState } from "react";
import { answer, api, type Schemas } from "../../api/client";
import { useMay } from "../../api/who";
import { useLiveQueries } from "../../live/useLive";
import { useSlowLive } from "../../live/useSlowLive";
import { Button, IconButton } from "../../ui/Button";
import { DataTable, type Sorting } from "../../ui/DataTable";
import { ConfirmDialog } from "../../ui/Dialog";
import { Empty } from "../../ui/Empty";
import { ErrorBox } from "../../ui/ErrorBox";
import { Checkbox, TextField } from "../../ui/Field";
import { FilterBar } from "../../ui/FilterBar";
import { counted } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import { JobCount, jobsLink } from "../../ui/links";
import { notify, notifyError } from "../../ui/Notices";
import { Page } from "../../ui/Page";
import { StateBadge } from "../../ui/StateBadge";
import { StateMark } from "../../ui/StateMark";
import { lookOf } from "../../ui/states";
import { useNarrow } from "../../ui/useNarrow";
import { LastHour, limitsOf, QueueRates } from "./figures";
import { LimitsDialog } from "./LimitsDialog";
import styles from "./Queues.module.css";
import { type QueuesSearch, queuesRoute, SORTS } from "./route";

type Queue = Schemas["QueueInfo"];

const TOPICS = ["queues", "jobs"];
const MANY = 200; // Whoever submits jobs may name any number of queues.

const ACTIONS = {
  id: "actions",
  header: () => <span className="visually-hidden">Actions</span>,
};

const NAME = {
  id: "name",
  header: "Queue",
  meta: { width: "minmax(104px, 2fr)", sortKey: "name" },
};

const COLUMNS: ColumnDef<Queue, unknown>[] = [
  {
    ...NAME,
    meta: { ...NAME.meta, width: "minmax(152px, 2fr)" }, // room for the mark of a paused one
    cell: ({ row: { original } }) => (
      <span className={styles.name}>
        <Link {...jobsLink({ queue: original.name })}>{original.name}</Link>
        {original.paused && <StateBadge state="paused" />}
      </span>
    ),
  },
  {
    id: "depth",
    header: "Queued",
    meta: { width: "78px", align: "right", sortKey: "depth" },
    cell: ({ row: { original } }) => (
      <JobCount value={original.depth} filter={{ queue: original.name, state: ["queued"] }} />
    ),
  },
  {
    id: "running",
    header: "Running",
    meta: { width: "78px", align: "right", sortKey: "running" },
    cell: ({ row: { original } }) => (
      <JobCount
        value={original.running ?? 0}
        filter={{ queue: original.name, state: ["running"] }}
      />
    ),
  },
  {
    id: "completed",
    header: () => <span title="Jobs that completed in the last hour">Done, 1 h</span>,
    meta: { width: "82px", align: "right" },
    cell: ({ row: { original } }) => <LastHour queue={original.name} state="completed" />,
  },
  {
    id: "failed",
    header: () => <span title="Jobs that failed in the last hour">Failed, 1 h</span>,
    meta: { width: "84px", align: "right" },
    cell: ({ row: { original } }) => <LastHour queue={original.name} state="failed" />,
  },
  {
    id: "weight",
    header: "Weight",
    meta: { width: "72px", align: "right" },
    cell: ({ row }) => row.original.weight,
  },
  {
    id: "limits",
    header: "Limits",
    meta: { width: "minmax(84px, 1fr)" },
    cell: ({ row }) => limitsOf(row.original),
  },
  {
    id: "rates",
    header: "Rates",
    meta: { width: "minmax(130px, 5fr)" },
    cell: ({ row }) => <QueueRates rates={row.original.rates ?? []} />,
  },
  {
    ...ACTIONS,
    meta: { width: "178px", align: "right" },
    cell: ({ row }) => <QueueActions queue={row.original} />,
  },
];

/** On a phone: what waits and runs; its actions are icons. */
const NARROW_COLUMNS: ColumnDef<Queue, unknown>[] = [
  {
    ...NAME,
    cell: ({ row: { original } }) => (
      <span className={styles.name}>
        {original.paused && (
          <span className={styles.paused}>
            <StateMark mark={lookOf("paused").mark} />
            <span className="visually-hidden">paused</span>
          </span>
        )}
        <Link {...jobsLink({ queue: original.name })}>{original.name}</Link>
      </span>
    ),
  },
  ...COLUMNS.slice(1, 3),
  {
    ...ACTIONS,
    meta: { width: "84px", align: "right" },
    cell: ({ row }) => <QueueActions queue={row.original} isNarrow />,
  },
];

/** The queues: how many jobs wait in each, what runs, and what limits them. */
export function QueuesView() {
  const search = queuesRoute.useSearch();
  const navigate = queuesRoute.useNavigate();
  const allowed = useMay("manage-queues");
  const narrow = useNarrow();
  const found = useQuery({
    queryKey: ["queues"],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/queues", { signal })),
  });
  const isMany = (found.data?.queues.length ?? 0) > MANY;
  useLiveQueries(isMany ? [] : TOPICS, ["queues"]);
  useSlowLive(isMany ? TOPICS : [], ["queues"]);
  const queues = useMemo(() => chosen(found.data?.queues, search), [found.data, search]);
  const change = (next: Partial<QueuesSearch>) =>
    void navigate({ search: (before) => ({ ...before, ...next }), replace: true });
  const sort = search.sort ?? "name";
  return (
    <Page title="Queues" facts={found.data && <Facts queues={found.data.queues} />} full>
      <FilterBar>
        <TextField
          label="Name"
          hideLabel
          placeholder="Part of a name"
          value={search.name ?? ""}
          onChange={(event) => change({ name: event.target.value || undefined })}
        />
        <Checkbox
          label="Only with jobs, or paused"
          checked={search.busy ?? false}
          onChange={(event) => change({ busy: event.target.checked || undefined })}
        />
      </FilterBar>
      {found.error && <ErrorBox error={found.error} onRetry={() => void found.refetch()} />}
      {!queues && !found.error && <Loading />}
      {queues?.length === 0 && <NoQueue isFiltered={found.data?.queues.length !== 0} />}
      {queues && queues.length > 0 && (
        <DataTable
          label="Queues"
          rows={queues}
          columns={narrow ? NARROW_COLUMNS : COLUMNS}
          rowKey={(queue) => queue.name}
          visibility={{ actions: allowed }}
          sorting={{ key: sort.replace("-", ""), descending: sort.startsWith("-") }}
          onSort={(next) => change({ sort: sortOf(next) })}
        />
      )}
    </Page>
  );
}

function Facts({ queues }: { queues: readonly Queue[] }) {
  const paused = queues.filter((one) => one.paused).length;
  return (
    <>
      <span>{counted(queues.length, "queue")}</span>
      {paused > 0 && <span>{paused} paused</span>}
    </>
  );
}

function NoQueue({ isFiltered }: { isFiltered: boolean }) {
  return isFiltered ? (
    <Empty title="No queue matches">Remove a filter to see more.</Empty>
  ) : (
    <Empty title="No queue">A queue is there once a job has named it.</Empty>
  );
}

/** Returns the queues that match, in the order of the address; equal ones by name. */
function chosen(
  queues: readonly Queue[] | undefined,
  { name = "", busy, sort = "name" }: QueuesSearch,
): Queue[] | undefined {
  const wanted = name.toLowerCase();
  const found = queues?.filter(
    (one) =>
      one.name.toLowerCase().includes(wanted) &&
      (!busy || one.paused || one.depth > 0 || (one.running ?? 0) > 0),
  );
  const sign = sort.startsWith("-") ? -1 : 1;
  const key = sort.replace("-", "") as "name" | "depth" | "running";
  const byName = (a: Queue, b: Queue) => (a.name < b.name ? -1 : 1);
  if (key === "name") return found?.sort((a, b) => sign * byName(a, b));
  return found?.sort((a, b) => sign * ((a[key] ?? 0) - (b[key] ?? 0)) || byName(a, b));
}

/** Returns the order for the address; by name is the usual one. */
function sortOf({ key, descending }: Sorting): QueuesSearch["sort"] {
  const text = `${descending ? "-" : ""}${key}`;
  return text === "name" ? undefined : SORTS.find((one) => one === text);
}

function QueueActions({ queue, isNarrow = false }: { queue: Queue; isNarrow?: boolean }) {
  const client = useQueryClient();
  const [asking, setAsking] = useState<"pause" | "limits">();
  const params = { path: { name: queue.name } };
  async function pause(): Promise<void> {
    await answer(api.POST("/api/v1/queues/{name}/pause", { params }));
    notify(`Queue ${queue.name} is paused`);
    await client.invalidateQueries({ queryKey: ["queues"] });
  }
  async function resume(): Promise<void> {
    try {
      await answer(api.POST("/api/v1/queues/{name}/resume", { params }));
      notify(`Queue ${queue.name} goes on`);
      await client.invalidateQueries({ queryKey: ["queues"] });
    } catch (problem) {
      notifyError(problem);
    }
  }
  return (
    <span className={styles.actions}>
      {isNarrow ? (
        <>
          {queue.paused ? (
            <IconButton
              small
              icon="play"
              label={`Resume ${queue.name}`}
              onClick={() => void resume()}
            />
          ) : (
            <IconButton
              small
              icon="pause"
              label={`Pause ${queue.name}`}
              onClick={() => setAsking("pause")}
            />
          )}
          <IconButton
            small
            icon="more"
            label={`Limits of ${queue.name}`}
            onClick={() => setAsking("limits")}
          />
        </>
      ) : queue.paused ? (
        <Button small icon="play" aria-label={`Resume ${queue.name}`} onClick={() => void resume()}>
          Resume
        </Button>
      ) : (
        <Button
          small
          icon="pause"
          aria-label={`Pause ${queue.name}`}
          onClick={() => setAsking("pause")}
        >
          Pause
        </Button>
      )}
      {!isNarrow && (
        <Button small aria-label={`Limits of ${queue.name}`} onClick={() => setAsking("limits")}>
          Limits
        </Button>
      )}
      {asking === "pause" && (
        <ConfirmDialog
          title={`Pause ${queue.name}?`}
          confirm="Pause"
          onConfirm={pause}
          onClose={() => setAsking(undefined)}
        >
          <p>Workers get no more jobs from it. Jobs that run go on.</p>
        </ConfirmDialog>
      )}
      {asking === "limits" && <LimitsDialog queue={queue} onClose={() => setAsking(undefined)} />}
    </span>
  );
}
