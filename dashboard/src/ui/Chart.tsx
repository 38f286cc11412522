import "./language";
import "uplot/dist/uPlot.min.css";
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import styles from "./Chart.module.css";
import { shortCount } from "./format";
import type { Tone } from "./states";

export interface Series {
  label: string;
  values: readonly (number | null)[];
  tone?: Tone | "accent";
  /** Fills the ground under the line. */
  filled?: boolean;
  dashed?: boolean;
}

interface Props {
  /** What the chart shows, for screen readers and as its heading. */
  label: string;
  /** Seconds since 1970. */
  times: readonly number[];
  series: readonly Series[];
  height?: number;
  /** Writes a value; without it: 1.2k. */
  format?: (value: number) => string;
  /** Somebody chose a range by dragging; times in seconds. */
  onRange?: (from: number, to: number) => void;
  /** Somebody clicked a point; the time of its slot in seconds. */
  onPoint?: (at: number) => void;
}

/**
 * Figures over time (uPlot). Import it lazily from a view's own chunk:
 * `const Chart = lazy(() => import("../../ui/Chart"))`.
 */
export default function Chart(props: Props) {
  const { label, times, series, height = 160, format, onRange, onPoint } = props;
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const latest = useRef({ format, onRange, onPoint });
  latest.current = { format, onRange, onPoint };
  const shape = series.map((one) => [one.label, one.tone, one.filled, one.dashed].join()).join(";");

  // biome-ignore lint/correctness/useExhaustiveDependencies: `shape` says when lines change.
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const write = (value: number | null) =>
      value === null ? "–" : (latest.current.format ?? shortCount)(value);
    const make = () => {
      const size = { width: element.clientWidth || 300, height };
      const made = new uPlot(
        options(series, size, write, (from, to) => latest.current.onRange?.(from, to)),
        dataOf(times, series),
        element,
      );
      listen(made, (at) => latest.current.onPoint?.(at));
      plot.current = made;
      return made;
    };
    make();
    const sizes = new ResizeObserver(() =>
      plot.current?.setSize({ width: element.clientWidth, height }),
    );
    sizes.observe(element);
    const redraw = () => {
      plot.current?.destroy();
      make();
    };
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", redraw);
    const themes = new MutationObserver(redraw);
    themes.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    return () => {
      sizes.disconnect();
      themes.disconnect();
      scheme.removeEventListener("change", redraw);
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [shape, height]);

  useEffect(() => {
    plot.current?.setData(dataOf(times, series));
  }, [times, series]);

  return <div className={styles.chart} ref={box} role="img" aria-label={label} />;
}

const MOVED_PX = 4;

/** Tells the time of a point that is clicked; a mouse that was moved in between chose a range. */
function listen(chart: uPlot, onPoint: (at: number) => void): void {
  let from = 0;
  chart.over.addEventListener("mousedown", (event) => {
    from = event.clientX;
  });
  chart.over.addEventListener("click", (event) => {
    const at = chart.cursor.idx;
    const time = at === null || at === undefined ? undefined : chart.data[0][at];
    if (time !== undefined && Math.abs(event.clientX - from) < MOVED_PX) onPoint(time);
  });
}

function dataOf(times: readonly number[], series: readonly Series[]): uPlot.AlignedData {
  return [[...times], ...series.map((one) => [...one.values])];
}

function options(
  series: readonly Series[],
  size: { width: number; height: number },
  write: (value: number | null) => string,
  onRange: (from: number, to: number) => void,
): uPlot.Options {
  const css = getComputedStyle(document.documentElement);
  const faint = resolved("--text-faint", css);
  const grid = { stroke: resolved("--line", css), width: 1 };
  const axis = { stroke: faint, grid, ticks: { show: false }, font: "11px system-ui" };
  return {
    ...size,
    legend: { live: true },
    cursor: { drag: { x: true, y: false, setScale: false } },
    hooks: {
      ready: [tellNewest],
      setData: [tellNewest],
      setCursor: [(chart) => chart.cursor.idx ?? tellNewest(chart)],
      setSelect: [
        (chart) => {
          const { left, width } = chart.select;
          if (width < MOVED_PX) return;
          onRange(chart.posToVal(left, "x"), chart.posToVal(left + width, "x"));
          chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
    },
    scales: { y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : 1] } },
    axes: [
      { ...axis, space: 70 },
      { ...axis, size: (_, texts) => room(texts), values: (_, splits) => splits.map(write) },
    ],
    series: [
      {},
      ...series.map((one) => {
        const colour = resolved(`--${one.tone ?? "accent"}`, css);
        return {
          label: one.label,
          stroke: colour,
          width: 1.5,
          fill: one.filled ? `color-mix(in srgb, ${colour} 14%, transparent)` : undefined,
          dash: one.dashed ? [5, 4] : undefined,
          points: { show: false, size: 5, fill: colour, filter: alone },
          value: (_: uPlot, value: number | null) => write(value),
        };
      }),
    ],
  };
}

/** Shows the newest values in the legend, as long as nobody points at others. */
function tellNewest(chart: uPlot): void {
  const lines = chart.data.slice(1);
  const isKnown = (at: number) => lines.some((line) => (line[at] ?? null) !== null);
  let idx = chart.data[0].length - 1;
  while (idx > 0 && !isKnown(idx)) idx -= 1;
  if (idx >= 0) chart.setLegend({ idx }, false);
}

const MIN_ROOM_PX = 52;

/** Returns how much room the texts of an axis need. */
function room(texts: readonly string[] | null): number {
  const longest = Math.max(0, ...(texts ?? []).map((text) => text.length));
  return Math.max(MIN_ROOM_PX, Math.ceil(longest * 6.4) + 16);
}

/** Returns the points without a neighbour: no line shows them. */
function alone(chart: uPlot, series: number): number[] | null {
  const values = chart.data[series] ?? [];
  const isThere = (at: number) => values[at] !== null && values[at] !== undefined;
  const found = Array.from(values, (_, at) => at).filter(
    (at) => isThere(at) && !isThere(at - 1) && !isThere(at + 1),
  );
  return found.length > 0 ? found : null;
}

/** Returns a colour as the canvas takes it: light-dark() counts in styles only. */
function resolved(name: string, css: CSSStyleDeclaration): string {
  const probe = document.createElement("span");
  probe.style.color = css.getPropertyValue(name);
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}
