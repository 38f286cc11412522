import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";

export const ROW = 20; // pixels of a line
const TALLEST = 4_000_000; // pixels: browsers draw nothing beyond some more

interface Lines {
  /** The first line in sight, from 1. */
  first: number;
  shown: number;
  /** The height of what is in sight, and of all, in pixels. */
  room: number;
  height: number;
  /** How far the first line is scrolled out, in pixels. */
  shift: number;
  goTo: (line: number) => void;
  toEnd: () => void;
  atEnd: boolean;
}

/** Which lines of a very long list are in sight; beyond some millions, the bar is not to scale. */
export function useLines(box: HTMLDivElement | null, total: number): Lines {
  const [top, setTop] = useState(0); // lines above, with a fraction
  const [room, setRoom] = useState(600);
  const own = useRef(-1); // where we scrolled to by ourselves
  const shown = Math.max(1, Math.floor(room / ROW));
  const most = Math.max(0, total - room / ROW);
  const height = Math.min(total * ROW, TALLEST);
  const scale = total * ROW > TALLEST ? most / Math.max(1, height - room) : 1 / ROW;
  const latest = useRef({ most, scale, top });
  latest.current = { most, scale, top };

  const move = useCallback(
    (lines: number) => {
      const { most: end, scale: by } = latest.current;
      const next = Math.min(Math.max(0, lines), end);
      setTop(next);
      if (box) {
        box.scrollTop = next / by;
        own.current = box.scrollTop;
      }
    },
    [box],
  );

  useLayoutEffect(() => {
    if (!box) return;
    const watch = new ResizeObserver(() => setRoom(box.clientHeight || 600));
    watch.observe(box);
    return () => watch.disconnect();
  }, [box]);

  useEffect(() => {
    if (!box) return;
    function onScroll(): void {
      if (!box || Math.abs(box.scrollTop - own.current) < 1) return;
      own.current = -1;
      setTop(box.scrollTop * latest.current.scale);
    }
    function onWheel(event: WheelEvent): void {
      const { scale: by, top: before } = latest.current;
      if (by === 1 / ROW || event.deltaY === 0 || event.ctrlKey) return;
      event.preventDefault();
      move(before + event.deltaY / ROW);
    }
    box.addEventListener("scroll", onScroll, { passive: true });
    box.addEventListener("wheel", onWheel, { passive: false });
    return () => {
      box.removeEventListener("scroll", onScroll);
      box.removeEventListener("wheel", onWheel);
    };
  }, [box, move]);

  const goTo = useCallback((line: number) => move(line - 1 - shown / 3), [move, shown]);
  const toEnd = useCallback(() => move(Number.MAX_SAFE_INTEGER), [move]);
  const bounded = Math.min(top, most);
  const whole = Math.floor(bounded);
  return {
    first: whole + 1,
    shown,
    room,
    height,
    shift: (bounded - whole) * ROW,
    goTo,
    toEnd,
    atEnd: bounded >= most - 1,
  };
}
