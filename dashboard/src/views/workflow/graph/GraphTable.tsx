import type { ColumnDef } from "@tanstack/react-table";
import { useMemo } from "react";
import { Button } from "../../../ui/Button";
import { DataTable } from "../../../ui/DataTable";
import { count } from "../../../ui/format";
import { JobLink } from "../../../ui/links";
import { StateBadge } from "../../../ui/StateBadge";
import { StateBar } from "../../../ui/StateBar";
import type { Graph, GraphNode } from "../queries";
import styles from "./Graph.module.css";
import { GroupCount, GroupStates } from "./GroupCount";
import { groupLabel } from "./groupLabel";
import { mainState } from "./mainState";

interface Props {
  graph: Graph;
  workflow: number;
  onToggle: (group: string) => void;
}

/** The same as the drawing, as rows: for the keyboard, screen readers and narrow windows. */
export function GraphTable({ graph, workflow, onToggle }: Props) {
  const names = useMemo(() => namesOf(graph), [graph]);
  const needs = useMemo(() => needsOf(graph, names), [graph, names]);
  const columns = useMemo<ColumnDef<GraphNode, unknown>[]>(
    () => [
      {
        id: "name",
        header: "Job or group",
        meta: { width: "minmax(220px, 2fr)" },
        cell: ({ row }) => <Name node={row.original} onToggle={onToggle} />,
      },
      {
        id: "state",
        header: "State",
        meta: { width: "minmax(180px, 2fr)" },
        cell: ({ row }) =>
          row.original.kind === "job" ? (
            <StateBadge state={mainState(row.original.states)} plain />
          ) : (
            <GroupStates workflow={workflow} node={row.original} />
          ),
      },
      {
        id: "bar",
        header: "",
        meta: { width: "90px" },
        cell: ({ row }) =>
          row.original.kind === "job" ? null : <StateBar counts={row.original.states} />,
      },
      {
        id: "jobs",
        header: "Jobs",
        meta: { width: "72px", align: "right" },
        cell: ({ row }) =>
          row.original.job === null ? (
            <GroupCount workflow={workflow} node={row.original}>
              {count(row.original.jobs)}
            </GroupCount>
          ) : (
            <JobLink id={row.original.job}>{count(row.original.jobs)}</JobLink>
          ),
      },
      {
        id: "critical",
        header: "Critical",
        meta: { width: "72px" },
        cell: ({ row }) => (row.original.critical ? "yes" : ""),
      },
      {
        id: "needs",
        header: "Waits for",
        meta: { width: "minmax(160px, 2fr)" },
        cell: ({ row }) => needs.get(row.original.id) ?? "",
      },
    ],
    [needs, onToggle, workflow],
  );
  return (
    <div className={styles.table}>
      <DataTable
        label="Jobs and groups of the graph"
        rows={graph.nodes}
        columns={columns}
        rowKey={(node) => node.id}
        maxHeight="65vh"
      />
    </div>
  );
}

function Name({ node, onToggle }: { node: GraphNode; onToggle: (group: string) => void }) {
  const inset = { paddingLeft: `${(node.parent ? node.parent.split("/").length : 0) * 18}px` };
  return (
    <span className={styles.name} style={inset}>
      {node.job === null ? (
        <Button
          kind="quiet"
          small
          icon={node.open ? "down" : "right"}
          aria-expanded={node.open}
          onClick={() => onToggle(node.id)}
        >
          {groupLabel(node)}
        </Button>
      ) : (
        <JobLink id={node.job}>{node.label}</JobLink>
      )}
    </span>
  );
}

function namesOf(graph: Graph): Map<string, string> {
  return new Map(graph.nodes.map((node) => [node.id, groupLabel(node)]));
}

const FEW = 4;

function needsOf(graph: Graph, names: Map<string, string>): Map<string, string> {
  const found = new Map<string, string[]>();
  for (const edge of graph.edges) {
    const before = found.get(edge.target) ?? [];
    before.push(names.get(edge.source) ?? edge.source);
    found.set(edge.target, before);
  }
  return new Map(
    [...found].map(([id, list]) => {
      const more = list.length > FEW ? ` and ${list.length - FEW} more` : "";
      return [id, list.slice(0, FEW).join(", ") + more];
    }),
  );
}
