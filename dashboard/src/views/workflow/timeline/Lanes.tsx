import { Link } from "@tanstack/react-router";
import { type PointerEvent, useEffect, useMemo, useRef, useState } from "react";
import { counted, duration, exact } from "../../../ui/format";
import { WorkerLink } from "../../../ui/links";
import { lookOf } from "../../../ui/states";
import { mainState } from "../graph/mainState";
import type { Timeline } from "../queries";
import { type Piece, pieces, ticks, toMoment, toPixels } from "./scale";
import styles from "./Timeline.module.css";

interface Props {
  timeline: Timeline;
  byWorker: boolean;
  workflow: number;
  onSelect: (since: number, until: number) => void;
}

type Bar = Timeline["lanes"][number]["bars"][number];

const ROW = 24;
const MIN_DRAG_PX = 6;

/** The lanes with their bars, and a scale of time above them. */
export function Lanes({ timeline, byWorker, workflow, onSelect }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place);
  const { shown_from: from, shown_until: until, gaps } = timeline;
  const scale = useMemo(() => pieces(from, until, gaps, width), [from, until, gaps, width]);
  const drag = useDrag(scale, onSelect);
  const marks = useMemo(() => ticks(scale, timeline.start), [scale, timeline.start]);
  const height = timeline.lanes.length * ROW;
  return (
    <div className={styles.lanes}>
      <div className={styles.names}>
        <div className={styles.corner} />
        {timeline.lanes.map((lane) => (
          <div key={`${lane.name} ${lane.row}`} className={styles.name} title={lane.name}>
            {lane.row > 0 ? "" : byWorker ? <WorkerLink name={lane.name} /> : lane.name}
          </div>
        ))}
      </div>
      <div className={styles.plot} ref={place}>
        <div className={styles.scale}>
          {marks.map((moment) => (
            <span
              key={moment}
              className={styles.tick}
              style={{ left: toPixels(scale, moment) }}
              title={exact(moment)}
            >
              +{duration((moment - timeline.start) / 1000)}
            </span>
          ))}
        </div>
        <div className={styles.bars} style={{ height }} {...drag.handlers}>
          {scale
            .filter((piece) => piece.idle)
            .map((piece) => (
              <span
                key={piece.from}
                className={styles.gap}
                style={{ left: piece.left, width: piece.right - piece.left }}
                title={`Nothing ran for ${duration((piece.until - piece.from) / 1000)}`}
              />
            ))}
          {timeline.lanes.map((lane, row) =>
            lane.bars.map((bar) => (
              <BarLink
                key={`${lane.name} ${lane.row} ${bar.start} ${bar.job}`}
                bar={bar}
                top={row * ROW}
                scale={scale}
                workflow={workflow}
              />
            )),
          )}
          {drag.range && (
            <span
              className={styles.selected}
              style={{ left: drag.range[0], width: drag.range[1] - drag.range[0] }}
            />
          )}
        </div>
      </div>
    </div>
  );
}

interface BarProps {
  bar: Bar;
  top: number;
  scale: readonly Piece[];
  workflow: number;
}

function BarLink({ bar, top, scale, workflow }: BarProps) {
  const left = toPixels(scale, bar.start);
  const width = Math.max(2, toPixels(scale, bar.end) - left);
  const state = mainState(bar.states);
  const look = lookOf(state);
  const took = duration((bar.end - bar.start) / 1000);
  const title =
    bar.runs === 1
      ? `Job ${bar.job}, attempt ${bar.attempt}: ${look.label}, ${took}`
      : `${counted(bar.runs, "attempt")} in ${took}`;
  const shared = {
    className: styles.bar,
    "data-tone": look.tone,
    style: { left, top: top + 3, width },
    title,
    "aria-label": title,
    tabIndex: -1,
    draggable: false,
  };
  if (bar.runs > 1) {
    return <Link {...shared} to="/jobs" search={{ workflow, state: Object.keys(bar.states) }} />;
  }
  return <Link {...shared} to="/jobs/$job" params={{ job: String(bar.job) }} />;
}

function useWidth(place: React.RefObject<HTMLDivElement | null>): number {
  const [width, setWidth] = useState(800);
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setWidth(Math.max(200, element.clientWidth)));
    observer.observe(element);
    setWidth(Math.max(200, element.clientWidth));
    return () => observer.disconnect();
  }, [place]);
  return width;
}

/** Lets a person choose a time by dragging over the lanes. */
function useDrag(scale: readonly Piece[], onSelect: (since: number, until: number) => void) {
  const [from, setFrom] = useState<number>();
  const [to, setTo] = useState<number>();
  const at = (event: PointerEvent<HTMLElement>) =>
    event.clientX - event.currentTarget.getBoundingClientRect().left;
  const range =
    from !== undefined && to !== undefined && Math.abs(to - from) >= MIN_DRAG_PX
      ? ([Math.min(from, to), Math.max(from, to)] as const)
      : undefined;
  const handlers = {
    onPointerDown: (event: PointerEvent<HTMLElement>) => {
      if (event.button !== 0 || event.pointerType === "touch") return;
      setFrom(at(event));
      setTo(undefined);
    },
    onPointerMove: (event: PointerEvent<HTMLElement>) => {
      if (from !== undefined) setTo(at(event));
    },
    onPointerUp: () => {
      if (range) onSelect(toMoment(scale, range[0]), toMoment(scale, range[1]));
      setFrom(undefined);
      setTo(undefined);
    },
    onPointerLeave: () => {
      setFrom(undefined);
      setTo(undefined);
    },
    onClickCapture: (event: React.MouseEvent) => {
      if (range) event.preventDefault();
    },
  };
  return { range, handlers };
}
