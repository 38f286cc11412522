import { Link } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import { Button } from "../../../ui/Button";
import { ErrorBox } from "../../../ui/ErrorBox";
import { Checkbox } from "../../../ui/Field";
import { counted } from "../../../ui/format";
import { Loading } from "../../../ui/Loading";
import { jobsLink } from "../../../ui/links";
import { inOrder } from "../../../ui/StateBar";
import { StateMark } from "../../../ui/StateMark";
import { lookOf } from "../../../ui/states";
import { type Graph, type GraphStates, useGraph, useGraphStates, type Workflow } from "../queries";
import type { WorkflowSearch } from "../route";
import styles from "./Graph.module.css";
import { GraphCanvas } from "./GraphCanvas";
import { GraphTable } from "./GraphTable";

interface Props {
  workflow: Workflow;
  search: WorkflowSearch;
  onChange: (search: Partial<WorkflowSearch>) => void;
}

/** The graph of a workflow: drawn, or as a table. */
export default function GraphPanel({ workflow, search, onChange }: Props) {
  const opened = useMemo(() => search.open ?? [], [search.open]);
  const [wanted, setWanted] = useState<string>();
  const found = useGraph(workflow.id, opened, wanted);
  const states = useGraphStates(workflow, opened, found.isSuccess);
  const graph = found.data;
  const fresh = states.data;
  useEffect(() => {
    if (graph && fresh && fresh.version !== graph.version) setWanted(fresh.version);
  }, [graph, fresh]);
  const shown = useMemo(() => (graph ? merged(graph, fresh) : undefined), [graph, fresh]);
  if (found.isPending) return <Loading rows={8} label="Loading the graph" />;
  if (!shown) {
    return <ErrorBox error={found.error} onRetry={() => void found.refetch()} />;
  }
  function toggle(group: string): void {
    const inside = (one: string) => one === group || one.startsWith(`${group}/`);
    const isOpen = shown?.nodes.some((node) => node.id === group && node.open);
    const next = isOpen ? opened.filter((one) => !inside(one)) : [...opened, group].slice(-20);
    onChange({ open: next.length > 0 ? next : undefined });
  }
  return (
    <div className={styles.panel}>
      <div className={styles.tools}>
        <span>
          <Link {...jobsLink({ workflow: workflow.id })}>{counted(shown.jobs, "job")}</Link>,{" "}
          {counted(shown.dependencies, "dependency", "dependencies")}
        </span>
        {opened.length > 0 && (
          <Button small onClick={() => onChange({ open: undefined })}>
            Close all groups
          </Button>
        )}
        <Checkbox
          label="As a table"
          checked={search.table ?? false}
          onChange={(event) => onChange({ table: event.target.checked || undefined })}
        />
        <Notes graph={shown} />
        <Legend graph={shown} />
      </div>
      {search.table ? (
        <GraphTable graph={shown} onToggle={toggle} workflow={workflow.id} />
      ) : (
        <GraphCanvas graph={shown} workflow={workflow.id} onToggle={toggle} />
      )}
    </div>
  );
}

/** Returns the graph with newer states, where they are of the same structure. */
function merged(graph: Graph, states: GraphStates | undefined): Graph {
  if (!states || states.version !== graph.version) return graph;
  const critical = new Set(states.critical);
  return {
    ...graph,
    states: states.states,
    nodes: graph.nodes.map((node) => ({
      ...node,
      states: states.nodes[node.id] ?? node.states,
      critical: critical.size > 0 ? critical.has(node.id) : node.critical,
      ms: states.ms[node.id] ?? null,
    })),
  };
}

/** What the marks and the lines of the drawing mean. */
function Legend({ graph }: { graph: Graph }) {
  return (
    <ul className={styles.legend} aria-label="Legend">
      {inOrder(graph.states).map(([state]) => {
        const { tone, mark, label } = lookOf(state);
        return (
          <li key={state}>
            <span data-tone={tone}>
              <StateMark mark={mark} />
            </span>
            {label}
          </li>
        );
      })}
      {graph.nodes.some((node) => node.critical) && (
        <li>
          <span className={styles.swatch} /> critical path
        </li>
      )}
    </ul>
  );
}

function Notes({ graph }: { graph: Graph }) {
  return (
    <>
      {graph.left_closed.length > 0 && (
        <span role="status">
          {counted(graph.left_closed.length, "group")} stayed closed: that many jobs cannot be drawn
          at once.
        </span>
      )}
      {graph.edges_left_out > 0 && (
        <span>
          {counted(graph.edges_left_out, "thinner edge is", "thinner edges are")} not drawn.
        </span>
      )}
    </>
  );
}
