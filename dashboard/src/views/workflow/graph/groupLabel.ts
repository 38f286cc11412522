import type { GraphNode } from "../queries";

/** Returns what a group is called. */
export function groupLabel(node: GraphNode): string {
  if (node.kind === "layers") {
    const many = node.label.includes("-");
    return many ? `Layers ${node.label.replace("-", " to ")}` : `Layer ${node.label}`;
  }
  return node.label;
}
