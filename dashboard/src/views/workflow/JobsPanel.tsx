import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import type { ColumnDef } from "@tanstack/react-table";
import { answer, api, type Schemas } from "../../api/client";
import { DataTable } from "../../ui/DataTable";
import { ErrorBox } from "../../ui/ErrorBox";
import { counted } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import { JobLink, jobsLink } from "../../ui/links";
import { StateBadge } from "../../ui/StateBadge";
import { Elapsed, Time } from "../../ui/Time";
import type { Workflow } from "./queries";
import styles from "./Workflow.module.css";

type Job = Schemas["Job"];

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

/** The jobs of a workflow, newest first. */
export function JobsPanel({ workflow }: { workflow: Workflow }) {
  const navigate = useNavigate();
  const found = useInfiniteQuery({
    queryKey: ["workflow", workflow.id, "jobs"],
    initialPageParam: 0,
    queryFn: ({ pageParam, signal }) =>
      answer(
        api.GET("/api/v1/workflows/{workflow}/jobs", {
          params: { path: { workflow: workflow.id }, query: { after: pageParam, limit: 100 } },
          signal,
        }),
      ),
    getNextPageParam: (page) => (page.next ? Number(page.next) : undefined),
    maxPages: 20,
  });
  if (found.isPending) return <Loading rows={8} label="Loading jobs" />;
  if (found.isError) {
    return <ErrorBox error={found.error} onRetry={() => void found.refetch()} />;
  }
  const rows = found.data.pages.flatMap((page) => page.jobs);
  return (
    <div className={styles.panel}>
      <p>
        <Link {...jobsLink({ workflow: workflow.id })}>Filter these jobs in the list of jobs</Link>
      </p>
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
