import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import type { ColumnDef } from "@tanstack/react-table";
import { answer, api, type Schemas } from "../../api/client";
import { DataTable } from "../../ui/DataTable";
import { ErrorBox } from "../../ui/ErrorBox";
import { type ActiveFilter, FilterBar } from "../../ui/FilterBar";
import { counted } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import { JobLink, jobsLink } from "../../ui/links";
import { StateBadge } from "../../ui/StateBadge";
import { lookOf } from "../../ui/states";
import { Elapsed, Time } from "../../ui/Time";
import { nameOfGroup } from "./graph/groupLabel";
import type { Workflow } from "./queries";
import type { WorkflowSearch } from "./route";
import styles from "./Workflow.module.css";

type Job = Schemas["Job"];

const PAGE = 100;

const COLUMNS: ColumnDef<Job, unknown>[] = [
  {
    id: "id",
    header: "Id",
    meta: { width: "80px", align: "right" },
    cell: ({ row }) => <JobLink id={row.original.id} />,
  },
  {
    id: "name",
    header: "Name",
    meta: { width: "minmax(160px, 2fr)" },
    cell: ({ row }) => (
      <JobLink id={row.original.id}>{row.original.name ?? row.original.task}</JobLink>
    ),
  },
  {
    id: "state",
    header: "State",
    meta: { width: "120px" },
    cell: ({ row }) => <StateBadge state={row.original.state} plain />,
  },
  {
    id: "queue",
    header: "Queue",
    meta: { width: "minmax(80px, 1fr)" },
    cell: ({ row }) => row.original.queue,
  },
  {
    id: "started",
    header: "Started",
    meta: { width: "100px" },
    cell: ({ row }) => <Time at={row.original.started_at} />,
  },
  {
    id: "took",
    header: "Took",
    meta: { width: "100px", align: "right" },
    cell: ({ row }) => <Elapsed from={row.original.started_at} to={row.original.finished_at} />,
  },
];

interface Props {
  workflow: Workflow;
  search: WorkflowSearch;
  onChange: (search: Partial<WorkflowSearch>) => void;
}

/** The jobs of a workflow, newest first, or those of a group of its graph. */
export function JobsPanel({ workflow, search, onChange }: Props) {
  const navigate = useNavigate();
  const found = useJobsOf(workflow, search);
  if (found.isPending) return <Loading rows={8} label="Loading jobs" />;
  if (!found.data) {
    return (
      <div className={styles.panel}>
        <Shown workflow={workflow} search={search} onChange={onChange} />
        <ErrorBox error={found.error} onRetry={() => void found.refetch()} />
      </div>
    );
  }
  const rows = found.data.pages.flatMap((page) => page.jobs);
  return (
    <div className={styles.panel}>
      <Shown workflow={workflow} search={search} onChange={onChange} />
      <DataTable
        label="Jobs of the workflow"
        rows={rows}
        columns={COLUMNS}
        rowKey={(row) => String(row.id)}
        onOpen={(row) => void navigate({ to: "/jobs/$job", params: { job: String(row.id) } })}
        onNearEnd={() => {
          if (found.hasNextPage && !found.isFetchingNextPage) void found.fetchNextPage();
        }}
        footer={`${counted(rows.length, "job")}${found.hasNextPage ? ", more as you scroll" : ""}`}
        maxHeight="65vh"
      />
    </div>
  );
}

function useJobsOf(workflow: Workflow, { group, state }: WorkflowSearch) {
  const path = { workflow: workflow.id };
  const isPart = group !== undefined || state !== undefined;
  return useInfiniteQuery({
    queryKey: ["workflow", workflow.id, "jobs", group, state],
    initialPageParam: 0,
    queryFn: ({ pageParam: after, signal }) =>
      isPart
        ? answer(
            api.GET("/api/v1/workflows/{workflow}/graph/jobs", {
              params: { path, query: { group, state, after, limit: PAGE } },
              signal,
            }),
          )
        : answer(
            api.GET("/api/v1/workflows/{workflow}/jobs", {
              params: { path, query: { after, limit: PAGE } },
              signal,
            }),
          ),
    getNextPageParam: (page) => (page.next ? Number(page.next) : undefined),
    maxPages: 20,
  });
}

/** Says which jobs are listed, with a way to all of them. */
function Shown({ workflow, search, onChange }: Props) {
  const states = search.state ?? [];
  const active: ActiveFilter[] = states.map((state) => ({
    key: state,
    label: lookOf(state).label,
    onRemove: () => {
      const rest = states.filter((one) => one !== state);
      onChange({ state: rest.length > 0 ? rest : undefined });
    },
  }));
  if (search.group) {
    const label = nameOfGroup(search.group);
    active.unshift({ key: "group", label, onRemove: () => onChange({ group: undefined }) });
  }
  return (
    <FilterBar active={active} onClear={() => onChange({ group: undefined, state: undefined })}>
      <Link {...jobsLink({ workflow: workflow.id })}>Filter these jobs in the list of jobs</Link>
    </FilterBar>
  );
}
