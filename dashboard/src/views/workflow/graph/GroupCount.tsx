import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { StateCounts } from "../../../ui/StateBar";
import type { GraphNode } from "../queries";

interface Props {
  workflow: number;
  node: GraphNode;
}

function placeOf(workflow: number, group: string, state?: string[]) {
  return {
    to: "/workflows/$workflow",
    params: { workflow: String(workflow) },
    search: { tab: "jobs", group, state },
  } as const;
}

/** The number of jobs of a group, which leads to them. */
export function GroupCount({ workflow, node, children }: Props & { children: ReactNode }) {
  return (
    <Link {...placeOf(workflow, node.id)} className="nodrag nopan">
      {children}
    </Link>
  );
}

/** The number of jobs of a group in each state, as links to them. */
export function GroupStates({ workflow, node }: Props) {
  return (
    <StateCounts counts={node.states} place={(state) => placeOf(workflow, node.id, [state])} />
  );
}
