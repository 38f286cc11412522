import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import type { ColumnDef } from "@tanstack/react-table";
import { answer, api, type Schemas } from "../../api/client";
import { useLiveQueries } from "../../live/useLive";
import { DataTable } from "../../ui/DataTable";
import { Empty } from "../../ui/Empty";
import { ErrorBox } from "../../ui/ErrorBox";
import { counted } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import { Page } from "../../ui/Page";
import { StateBadge } from "../../ui/StateBadge";
import { Time } from "../../ui/Time";
import { type SchedulesSearch, schedulesRoute } from "./route";
import { ScheduleDetails } from "./ScheduleDetails";
import styles from "./Schedules.module.css";

export type Schedule = Schemas["Schedule"];

export function SchedulesView() {
  const search = schedulesRoute.useSearch();
  const navigate = useNavigate();
  const found = useQuery({
    queryKey: ["schedules", search.namespace ?? ""],
    queryFn: ({ signal }) =>
      answer(
        api.GET("/api/v1/schedules", {
          params: { query: { namespace: search.namespace } },
          signal,
        }),
      ),
  });
  useLiveQueries(["schedules", "workflows"], ["schedules"], ["schedule"]);
  const go = (next: SchedulesSearch) => void navigate({ to: "/schedules", search: next });
  const show = (one: Schedule) => go({ ...search, show: one.name, in: one.namespace });
  return (
    <Page title="Schedules">
      {found.isPending && <Loading rows={5} label="Loading schedules" />}
      {found.isError && <ErrorBox error={found.error} onRetry={() => void found.refetch()} />}
      {found.data?.schedules.length === 0 && (
        <Empty title="No schedules">
          A schedule starts a template or jobs at the times of a cron line:
          <code> windlass schedules apply NAME "0 3 * * *" --template NAME</code>
        </Empty>
      )}
      {found.data && found.data.schedules.length > 0 && (
        <div className={styles.table}>
          <DataTable
            label="Schedules"
            rows={found.data.schedules}
            columns={columns(search)}
            rowKey={(row) => `${row.namespace}/${row.name}`}
            isSelected={(row) => row.name === search.show && row.namespace === search.in}
            onOpen={show}
            maxHeight="50vh"
          />
        </div>
      )}
      {search.show && (
        <ScheduleDetails
          key={`${search.in}/${search.show}`}
          name={search.show}
          namespace={search.in ?? "default"}
        />
      )}
    </Page>
  );
}

function columns(search: SchedulesSearch): ColumnDef<Schedule, unknown>[] {
  return [
    {
      id: "name",
      header: "Name",
      meta: { width: "minmax(140px, 1.5fr)" },
      cell: ({ row }) => (
        <Link
          to="/schedules"
          search={{ ...search, show: row.original.name, in: row.original.namespace }}
        >
          {row.original.name}
        </Link>
      ),
    },
    {
      id: "state",
      header: "State",
      meta: { width: "100px" },
      cell: ({ row }) => <StateBadge state={row.original.paused ? "paused" : "active"} plain />,
    },
    {
      id: "words",
      header: "When",
      meta: { width: "minmax(230px, 2.5fr)" },
      cell: ({ row }) => <span title={row.original.cron ?? undefined}>{row.original.words}</span>,
    },
    {
      id: "next",
      header: "Next run",
      meta: { width: "110px" },
      cell: ({ row }) => <Time at={row.original.next_at} />,
    },
    {
      id: "last",
      header: "Last slot",
      meta: { width: "110px" },
      cell: ({ row }) => <Time at={row.original.last_slot} />,
    },
    {
      id: "starts",
      header: "Starts",
      meta: { width: "minmax(120px, 1fr)" },
      cell: ({ row }) => <Starts schedule={row.original} search={search} />,
    },
    {
      id: "namespace",
      header: "Namespace",
      meta: { width: "minmax(90px, 1fr)" },
      cell: ({ row }) => row.original.namespace,
    },
  ];
}

function Starts({ schedule, search }: { schedule: Schedule; search: SchedulesSearch }) {
  const { name, namespace, template } = schedule;
  return template ? (
    <Link to="/templates" search={{ show: template.split("@")[0], in: namespace }}>
      {template}
    </Link>
  ) : (
    <Link to="/schedules" search={{ ...search, show: name, in: namespace }}>
      {counted(schedule.jobs.length, "job")}
    </Link>
  );
}
