import type { GraphNode } from "../queries";

/** x and y */
export type Point = readonly number[];

/** Returns a line through these points; it is level in each, so it bends only between columns. */
export function pathThrough(points: readonly Point[]): string {
  return points
    .map(([x = 0, y = 0], place) => {
      const [left = 0, top = 0] = points[place - 1] ?? [x, y];
      if (place === 0) return `M${x} ${y}`;
      if (top === y) return `H${x}`;
      const middle = (left + x) / 2;
      return `C${middle} ${top} ${middle} ${y} ${x} ${y}`;
    })
    .join("");
}

/** Returns what somebody wants to see first: what failed, else what runs, else all. */
export function placesToShow(nodes: readonly GraphNode[]): readonly GraphNode[] {
  const closed = nodes.filter((node) => !node.open);
  for (const wanted of [
    ["failed", "rejected"],
    ["running", "assigned"],
  ]) {
    const found = closed.filter((node) => wanted.some((state) => (node.states[state] ?? 0) > 0));
    if (found.length > 0) return found;
  }
  return nodes;
}
