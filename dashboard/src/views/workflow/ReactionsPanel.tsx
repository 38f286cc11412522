import { useQuery } from "@tanstack/react-query";
import type { ColumnDef } from "@tanstack/react-table";
import { answer, api, type Schemas } from "../../api/client";
import { DataTable } from "../../ui/DataTable";
import { Empty } from "../../ui/Empty";
import { ErrorBox } from "../../ui/ErrorBox";
import { counted } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import { WorkflowLink } from "../../ui/links";
import { Time } from "../../ui/Time";
import type { Workflow } from "./queries";

type Reaction = Schemas["ReactionInfo"];

const COLUMNS: ColumnDef<Reaction, unknown>[] = [
  { id: "on", header: "On", meta: { width: "90px" }, cell: ({ row }) => row.original.on },
  { id: "kind", header: "What", meta: { width: "100px" }, cell: ({ row }) => row.original.kind },
  { id: "state", header: "State", meta: { width: "100px" }, cell: ({ row }) => row.original.state },
  {
    id: "tries",
    header: "Tries",
    meta: { width: "64px", align: "right" },
    cell: ({ row }) => row.original.tries,
  },
  {
    id: "result",
    header: "Result",
    meta: { width: "100px" },
    cell: ({ row }) => <Result reaction={row.original} />,
  },
  {
    id: "when",
    header: "When",
    meta: { width: "110px" },
    cell: ({ row }) => <Time at={row.original.finished_at ?? row.original.next_at} />,
  },
  {
    id: "message",
    header: "Message",
    meta: { width: "minmax(160px, 3fr)" },
    cell: ({ row }) => row.original.message ?? "",
  },
];

function Result({ reaction }: { reaction: Reaction }) {
  if (reaction.result === null) return <span>–</span>;
  if (reaction.kind === "submit") return <WorkflowLink id={reaction.result} />;
  return <span>{reaction.result}</span>;
}

/** What followed the end of the workflow: webhooks, follow-ups and retries. */
export function ReactionsPanel({ workflow }: { workflow: Workflow }) {
  const found = useQuery({
    queryKey: ["workflow", workflow.id, "reactions"],
    queryFn: ({ signal }) =>
      answer(
        api.GET("/api/v1/workflows/{workflow}/reactions", {
          params: { path: { workflow: workflow.id } },
          signal,
        }),
      ),
  });
  if (found.isPending) return <Loading rows={3} label="Loading reactions" />;
  if (!found.data) {
    return <ErrorBox error={found.error} onRetry={() => void found.refetch()} />;
  }
  const planned = workflow.on_success.length + workflow.on_failure.length + workflow.on_end.length;
  if (found.data.reactions.length === 0) {
    return (
      <Empty title="No reactions yet">
        {planned > 0
          ? `${counted(planned, "reaction")} will follow the end of this workflow.`
          : "This workflow has none: on_success, on_failure and on_end say what follows its end."}
      </Empty>
    );
  }
  return (
    <DataTable
      label="Reactions"
      rows={found.data.reactions}
      columns={COLUMNS}
      rowKey={(row) => String(row.id)}
      maxHeight="60vh"
    />
  );
}
