import type { ColumnDef } from "@tanstack/react-table";
import type { Schemas } from "../../api/client";
import { DataTable } from "../../ui/DataTable";
import { exact } from "../../ui/format";
import { WorkflowLink } from "../../ui/links";
import { StateBadge } from "../../ui/StateBadge";
import { Time } from "../../ui/Time";

type Run = Schemas["ScheduleRun"];

const COLUMNS: ColumnDef<Run, unknown>[] = [
  {
    id: "slot",
    header: "Slot",
    meta: { width: "minmax(230px, 1fr)" },
    cell: ({ row }) => (row.original.slot ? exact(Date.parse(row.original.slot)) : "by hand"),
  },
  {
    id: "state",
    header: "State",
    meta: { width: "110px" },
    cell: ({ row: { original } }) => (
      <StateBadge state={original.workflow_state ?? original.state} plain />
    ),
  },
  {
    id: "workflow",
    header: "Workflow",
    meta: { width: "100px", align: "right" },
    cell: ({ row }) =>
      row.original.workflow === null ? "–" : <WorkflowLink id={row.original.workflow} />,
  },
  {
    id: "created",
    header: "Began",
    meta: { width: "110px" },
    cell: ({ row }) => <Time at={row.original.created_at} />,
  },
  {
    id: "reason",
    header: "Reason",
    meta: { width: "minmax(160px, 2fr)" },
    cell: ({ row }) => row.original.reason ?? "",
  },
  {
    id: "actor",
    header: "By",
    meta: { width: "minmax(90px, 1fr)" },
    cell: ({ row }) => row.original.actor ?? "",
  },
];

/** What became of the newest slots. */
export function RunsTable({ runs }: { runs: readonly Run[] }) {
  return (
    <DataTable
      label="History of slots"
      rows={runs}
      columns={COLUMNS}
      rowKey={(row) => String(row.id)}
      maxHeight="45vh"
    />
  );
}
