import "@xyflow/react/dist/base.css";
import {
  Background,
  Controls,
  type Edge,
  MiniMap,
  type Node,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
  type Viewport,
} from "@xyflow/react";
import { useEffect, useMemo, useRef } from "react";
import { lookOf } from "../../../ui/states";
import type { Graph, GraphNode } from "../queries";
import { BoxNode, type BoxNodeType } from "./BoxNode";
import styles from "./Graph.module.css";
import { mainState } from "./mainState";

interface Props {
  graph: Graph;
  workflow: number;
  onToggle: (group: string) => void;
}

const NODE_TYPES = { box: BoxNode };
const OPENS_AT = 0.5; // A group that fills this part of the window opens by itself.
const CLOSES_AT = 0.12;

/** The graph drawn: positions come from the server, zooming opens and closes groups. */
export function GraphCanvas(props: Props) {
  return (
    <ReactFlowProvider>
      <Flow {...props} />
    </ReactFlowProvider>
  );
}

function Flow({ graph, workflow, onToggle }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const flow = useReactFlow();
  const toggle = useRef(onToggle);
  toggle.current = onToggle;
  const nodes = useMemo(
    () =>
      graph.nodes.map((node) => boxOf(node, workflow, (group: string) => toggle.current(group))),
    [graph.nodes, workflow],
  );
  const edges = useMemo(() => graph.edges.map((edge) => lineOf(edge)), [graph.edges]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the first view of each workflow is whole.
  useEffect(() => {
    void flow.fitView({ padding: 0.08, maxZoom: 1 });
  }, [workflow]);

  function onMoveEnd(event: MouseEvent | TouchEvent | null, view: Viewport): void {
    if (!event || !place.current) return;
    const { width, height } = place.current.getBoundingClientRect();
    const group = groupToToggle(graph.nodes, view, width, height);
    if (group) onToggle(group);
  }
  return (
    <section ref={place} className={styles.canvas} aria-label="Graph of the workflow">
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={NODE_TYPES}
        onMoveEnd={onMoveEnd}
        minZoom={0.02}
        maxZoom={2.5}
        fitView
        fitViewOptions={{ padding: 0.08, maxZoom: 1 }}
        onlyRenderVisibleElements
        nodesDraggable={false}
        nodesConnectable={false}
        nodesFocusable={false}
        edgesFocusable={false}
        elementsSelectable={false}
        disableKeyboardA11y
        proOptions={{ hideAttribution: true }}
      >
        <Background gap={24} />
        <Controls showInteractive={false} />
        <MiniMap
          pannable
          zoomable
          ariaLabel="Map of the graph"
          nodeClassName={(node) => styles[`map-${toneOf(node as BoxNodeType)}`] ?? ""}
        />
      </ReactFlow>
    </section>
  );
}

function toneOf(node: BoxNodeType): string {
  return node.data.node.open ? "open" : lookOf(mainState(node.data.node.states)).tone;
}

function boxOf(node: GraphNode, workflow: number, onToggle: (group: string) => void): Node {
  return {
    id: node.id,
    type: "box",
    position: { x: node.x, y: node.y },
    width: node.width,
    height: node.height,
    zIndex: depth(node),
    data: { node, workflow, onToggle },
  };
}

function depth(node: GraphNode): number {
  return node.parent ? node.parent.split("/").length : 0;
}

function lineOf(edge: Graph["edges"][number]): Edge {
  return {
    id: `${edge.source}>${edge.target}`,
    source: edge.source,
    target: edge.target,
    className: edge.critical ? styles.critical : styles.edge,
    style: { strokeWidth: Math.min(6, 1 + Math.log10(edge.jobs)) },
    zIndex: 50,
  };
}

/** Returns a closed group that fills the window, or an open one that has become small. */
function groupToToggle(
  nodes: readonly GraphNode[],
  view: Viewport,
  width: number,
  height: number,
): string | undefined {
  const x = (width / 2 - view.x) / view.zoom;
  const y = (height / 2 - view.y) / view.zoom;
  for (const node of nodes) {
    if (node.kind === "job") continue;
    const share = (node.width * view.zoom) / width;
    const holds =
      x >= node.x && x <= node.x + node.width && y >= node.y && y <= node.y + node.height;
    if (!node.open && holds && share > OPENS_AT) return node.id;
    if (node.open && share < CLOSES_AT) return node.id;
  }
  return undefined;
}
