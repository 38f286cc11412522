import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { ColumnDef } from "@tanstack/react-table";
import { answer, api, type Schemas } from "../../api/client";
import { useLiveQueries } from "../../live/useLive";
import { Button } from "../../ui/Button";
import { DataTable } from "../../ui/DataTable";
import { Empty } from "../../ui/Empty";
import { ErrorBox, FILTER_HINT } from "../../ui/ErrorBox";
import { counted } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import { JobCount, WorkflowLink } from "../../ui/links";
import { Page } from "../../ui/Page";
import { StateBadge } from "../../ui/StateBadge";
import { StateBar, StateCounts } from "../../ui/StateBar";
import { Elapsed, Time } from "../../ui/Time";
import { type WorkflowsSearch, workflowsRoute, workflowsSearch } from "./route";
import { WorkflowFilters } from "./WorkflowFilters";
import styles from "./Workflows.module.css";

type Workflow = Schemas["Workflow"];

const PAGE = 100;

const COLUMNS: ColumnDef<Workflow, unknown>[] = [
  {
    id: "id",
    header: "Id",
    meta: { width: "72px", align: "right" },
    cell: ({ row }) => <WorkflowLink id={row.original.id} />,
  },
  {
    id: "name",
    header: "Name",
    meta: { width: "minmax(150px, 2fr)" },
    cell: ({ row }) => <WorkflowLink id={row.original.id}>{row.original.name}</WorkflowLink>,
  },
  {
    id: "state",
    header: "State",
    meta: { width: "112px" },
    cell: ({ row }) => <StateBadge state={row.original.state} plain />,
  },
  {
    id: "progress",
    header: "Progress",
    meta: { width: "minmax(90px, 1fr)" },
    cell: ({ row }) => <StateBar counts={row.original.counts} />,
  },
  {
    id: "counts",
    header: "Jobs by state",
    meta: { width: "minmax(210px, 2fr)" },
    cell: ({ row }) => (
      <span className={styles.counts}>
        <StateCounts counts={row.original.counts} filter={{ workflow: row.original.id }} />
      </span>
    ),
  },
  {
    id: "jobs",
    header: "Jobs",
    meta: { width: "72px", align: "right" },
    cell: ({ row }) => (
      <JobCount value={row.original.jobs} filter={{ workflow: row.original.id }} />
    ),
  },
  {
    id: "created",
    header: "Started",
    meta: { width: "112px" },
    cell: ({ row }) => <Time at={row.original.created_at} />,
  },
  {
    id: "took",
    header: "Took",
    meta: { width: "92px", align: "right" },
    cell: ({ row }) => (
      <Elapsed from={row.original.created_at} to={row.original.finished_at ?? undefined} />
    ),
  },
  {
    id: "by",
    header: "Submitted by",
    meta: { width: "minmax(100px, 1fr)" },
    cell: ({ row }) => row.original.submitted_by ?? "–",
  },
];

export function WorkflowsView() {
  // Without what the frame adds to the address, such as the time that the page shows.
  const search = workflowsSearch({ ...workflowsRoute.useSearch() });
  const navigate = useNavigate();
  const found = useInfiniteQuery({
    queryKey: ["workflows", search],
    initialPageParam: 0,
    queryFn: ({ pageParam, signal }) =>
      answer(
        api.GET("/api/v1/workflows", {
          params: { query: { ...search, after: pageParam, limit: PAGE } },
          signal,
        }),
      ),
    getNextPageParam: (page) => (page.next ? Number(page.next) : undefined),
    maxPages: 20,
  });
  useLiveQueries(["workflows"], ["workflows"]);
  const rows = found.data?.pages.flatMap((page) => page.workflows) ?? [];
  const change = (next: WorkflowsSearch) =>
    void navigate({ to: "/workflows", search: next, replace: true });
  return (
    <Page title="Workflows" full>
      <WorkflowFilters search={search} onChange={change} />
      {found.isPending && <Loading rows={8} label="Loading workflows" />}
      {found.isError && (
        <ErrorBox error={found.error} hint={FILTER_HINT} onRetry={() => void found.refetch()} />
      )}
      {found.isSuccess && rows.length === 0 && (
        <NoWorkflows
          search={search}
          isBusy={found.isFetchingNextPage}
          onMore={found.hasNextPage ? () => void found.fetchNextPage() : undefined}
        />
      )}
      {rows.length > 0 && (
        <DataTable
          label="Workflows"
          rows={rows}
          columns={COLUMNS}
          rowKey={(row) => String(row.id)}
          onOpen={(row) =>
            void navigate({ to: "/workflows/$workflow", params: { workflow: String(row.id) } })
          }
          onNearEnd={() => {
            if (found.hasNextPage && !found.isFetchingNextPage) void found.fetchNextPage();
          }}
          footer={`${counted(rows.length, "workflow")}${found.hasNextPage ? ", more as you scroll" : ""}`}
        />
      )}
    </Page>
  );
}

interface NoneProps {
  search: WorkflowsSearch;
  isBusy: boolean;
  /** A call looks at a bounded number of workflows: older ones may match. */
  onMore?: () => void;
}

function NoWorkflows({ search, isBusy, onMore }: NoneProps) {
  if (Object.values(search).some((value) => value !== undefined)) {
    return (
      <Empty title={onMore ? "No workflow matches so far" : "No workflow matches"}>
        {onMore ? (
          <Button small busy={isBusy} onClick={onMore}>
            Search older workflows
          </Button>
        ) : (
          "Remove a filter to see more."
        )}
      </Empty>
    );
  }
  return (
    <Empty title="No workflows">
      A workflow is a set of jobs that wait for each other: submit a workflow file with
      <code> windlass workflows submit FILE</code>, or start a template.
    </Empty>
  );
}
