import "@xyflow/react/dist/base.css";
import {
  Background,
  BaseEdge,
  ControlButton,
  Controls,
  type Edge,
  type EdgeProps,
  getViewportForBounds,
  MiniMap,
  type Node,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
  type Viewport,
} from "@xyflow/react";
import { useEffect, useMemo, useRef } from "react";
import { Icon } from "../../../ui/Icon";
import { lookOf } from "../../../ui/states";
import type { Graph, GraphNode } from "../queries";
import { BoxNode, type BoxNodeType } from "./BoxNode";
import styles from "./Graph.module.css";
import { mainState } from "./mainState";
import { type Point, pathThrough, placesToShow } from "./paths";

interface Props {
  graph: Graph;
  workflow: number;
  onToggle: (group: string) => void;
}

type Line = Edge<{ path: readonly Point[] }, "line">;

const NODE_TYPES = { box: BoxNode };
const EDGE_TYPES = { line: LineEdge };
const OPENS_AT = 1.5; // Enlarged this much, a group opens where somebody points,
const CLOSES_AT = 0.12; // and one that fills less than this part of the window closes.
const MIN_ZOOM = 0.02;
const MAX_ZOOM = 2.5;
const LEGIBLE = 0.5; // At least this large, names can be read.
const MARGIN = 24;
const MAPPED = 30; // From so many boxes on, a map is shown.
const WHOLE = { padding: 0.08, maxZoom: 1 };

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
  const toggled = useRef<GraphNode>(undefined); // as it was before
  const toggle = useRef(onToggle);
  toggle.current = (group) => {
    toggled.current = graph.nodes.find((node) => node.id === group);
    onToggle(group);
  };
  const nodes = useMemo(
    () =>
      graph.nodes.map((node) => boxOf(node, workflow, (group: string) => toggle.current(group))),
    [graph.nodes, workflow],
  );
  const edges = useMemo(() => linesOf(graph), [graph]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only the first view of each workflow is chosen.
  useEffect(() => {
    const shown = place.current?.getBoundingClientRect();
    if (!shown) return;
    void flow.setViewport(firstView(graph.nodes, shown));
  }, [workflow]);
  // Boxes have other places when a group has opened or closed: what it holds is brought into view.
  useEffect(() => {
    const shown = place.current?.getBoundingClientRect();
    const before = toggled.current;
    const group = graph.nodes.find((node) => node.id === before?.id);
    if (!group || !shown || group.open === before?.open) return;
    toggled.current = undefined;
    const around = group.open ? group : boundsOf(graph.nodes);
    const { padding, maxZoom } = WHOLE;
    void flow.setViewport(
      getViewportForBounds(around, shown.width, shown.height, MIN_ZOOM, maxZoom, padding),
    );
  }, [graph.nodes, flow]);

  function onMoveEnd(event: MouseEvent | TouchEvent | null, view: Viewport): void {
    if (!event || !place.current) return;
    const shown = place.current.getBoundingClientRect();
    const group = groupToToggle(graph.nodes, view, pointOf(event, shown), shown.width);
    if (group) toggle.current(group);
  }
  return (
    <section ref={place} className={styles.canvas} aria-label="Graph of the workflow">
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={NODE_TYPES}
        onMoveEnd={onMoveEnd}
        minZoom={MIN_ZOOM}
        maxZoom={MAX_ZOOM}
        edgeTypes={EDGE_TYPES}
        // The wheel scrolls the page; with Ctrl it zooms, as a pinch does.
        zoomOnScroll={false}
        preventScrolling={false}
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
        <Controls showInteractive={false} fitViewOptions={WHOLE}>
          <ControlButton
            title="Full screen"
            aria-label="Full screen"
            onClick={() => void toggleFullScreen(place.current)}
          >
            <Icon name="fullScreen" />
          </ControlButton>
        </Controls>
        {graph.nodes.length > MAPPED && (
          <MiniMap
            pannable
            zoomable
            ariaLabel="Map of the graph"
            nodeClassName={(node) => styles[`map-${toneOf(node as BoxNodeType)}`] ?? ""}
          />
        )}
      </ReactFlow>
    </section>
  );
}

function LineEdge({ data, style }: EdgeProps<Line>) {
  return data && <BaseEdge path={pathThrough(data.path)} style={style} />;
}

async function toggleFullScreen(place: HTMLElement | null): Promise<void> {
  await (document.fullscreenElement ? document.exitFullscreen() : place?.requestFullscreen());
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
    zIndex: 2 * depth(node) + 1,
    data: { node, workflow, onToggle },
  };
}

function depth(node: GraphNode): number {
  return node.parent ? node.parent.split("/").length : 0;
}

/** Returns the lines; each is behind the boxes that it joins, and before the groups around them. */
function linesOf(graph: Graph): Line[] {
  const depths = new Map(graph.nodes.map((node) => [node.id, depth(node)]));
  return graph.edges.map((edge) => ({
    id: `${edge.source}>${edge.target}`,
    type: "line",
    source: edge.source,
    target: edge.target,
    data: { path: edge.path },
    className: edge.critical ? styles.critical : styles.edge,
    style: { strokeWidth: Math.min(6, 1 + Math.log10(edge.jobs)) },
    zIndex: 2 * Math.max(depths.get(edge.source) ?? 0, depths.get(edge.target) ?? 0),
  }));
}

function boundsOf(nodes: readonly GraphNode[]) {
  const x = Math.min(...nodes.map((node) => node.x));
  const y = Math.min(...nodes.map((node) => node.y));
  return {
    x,
    y,
    width: Math.max(...nodes.map((node) => node.x + node.width)) - x,
    height: Math.max(...nodes.map((node) => node.y + node.height)) - y,
  };
}

/** Returns a view of all if its names can be read, else of what failed or runs. */
function firstView(nodes: readonly GraphNode[], shown: DOMRect): Viewport {
  const { width, height } = shown;
  const { padding, maxZoom } = WHOLE;
  const all = getViewportForBounds(boundsOf(nodes), width, height, MIN_ZOOM, maxZoom, padding);
  if (all.zoom >= LEGIBLE) return all;
  const around = boundsOf(placesToShow(nodes));
  const view = getViewportForBounds(around, width, height, LEGIBLE, maxZoom, padding);
  // What does not fit is shown from its beginning.
  if (around.width * view.zoom > width) view.x = MARGIN - around.x * view.zoom;
  if (around.height * view.zoom > height) view.y = MARGIN - around.y * view.zoom;
  return view;
}

/** Returns where in the drawing somebody points; its middle if that is not known. */
function pointOf(event: MouseEvent | TouchEvent, shown: DOMRect): { x: number; y: number } {
  if ("clientX" in event) return { x: event.clientX - shown.x, y: event.clientY - shown.y };
  return { x: shown.width / 2, y: shown.height / 2 };
}

/** Returns a closed group that is drawn large where somebody points, or a small open one. */
function groupToToggle(
  nodes: readonly GraphNode[],
  view: Viewport,
  point: { x: number; y: number },
  width: number,
): string | undefined {
  const x = (point.x - view.x) / view.zoom;
  const y = (point.y - view.y) / view.zoom;
  for (const node of nodes) {
    if (node.kind === "job") continue;
    const holds =
      x >= node.x && x <= node.x + node.width && y >= node.y && y <= node.y + node.height;
    if (!node.open && holds && view.zoom >= OPENS_AT) return node.id;
    if (node.open && node.width * view.zoom < CLOSES_AT * width) return node.id;
  }
  return undefined;
}
