import type { GraphNode } from "../queries";

/** Returns what a group is called. */
export function groupLabel(node: GraphNode): string {
  return node.kind === "layers" ? layersLabel(node.label) : node.label;
}

function layersLabel(layers: string): string {
  const many = layers.includes("-");
  return many ? `Layers ${layers.replace("-", " to ")}` : `Layer ${layers}`;
}

/** Returns what a group is called by its id alone: `n:test/p:121-240` is "test, 121 to 240". */
export function nameOfGroup(id: string): string {
  const pieces = id.split("/").map((piece) => {
    const value = decoded(piece.slice(2));
    if (piece.startsWith("l:")) return layersLabel(value);
    return piece.startsWith("p:") ? value.replace("-", " to ") : value;
  });
  return pieces.join(", ");
}

/** An address that somebody typed may hold any text. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
