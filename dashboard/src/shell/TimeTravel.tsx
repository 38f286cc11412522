import { useRouterState } from "@tanstack/react-router";
import { type ChangeEvent, useEffect, useId, useRef, useState } from "react";
import { Button } from "../ui/Button";
import { duration, localTime, moment } from "../ui/format";
import { Icon } from "../ui/Icon";
import { useAsOf, useSetAsOf } from "./asOf";
import styles from "./TimeTravel.module.css";

const MINUTE_MS = 60_000;
const HOUR = 60; // minutes
const DAY = 24 * HOUR;
/** How far back the places of the slider are: close to each other near now, up to 30 days. */
const STOPS: readonly number[] = [
  ...[0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50],
  ...[1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 12, 16, 20].map((hours) => hours * HOUR),
  ...[1, 1.5, 2, 3, 4, 5, 7, 10, 14, 21, 30].map((days) => days * DAY),
];
const SETTLE_MS = 250;

/** The place in the header where the page is moved to another time; see `useAsOf`. */
export function TimeTravel() {
  const asOf = useAsOf();
  const setAsOf = useSetAsOf();
  const [open, setOpen] = useState(false);
  const path = useRouterState({ select: (state) => state.location.pathname });
  if (asOf === undefined && !open) {
    return (
      <Button small kind="quiet" icon="clock" onClick={() => setOpen(true)}>
        <span className={styles.word}>Now</span>
        <span className="visually-hidden">: show an earlier time</span>
      </Button>
    );
  }
  const back = () => {
    setOpen(false);
    setAsOf(undefined);
  };
  return (
    <div className={styles.travel}>
      {asOf !== undefined && (
        <p role="status" className={styles.banner}>
          <Icon name="clock" size={14} />
          <span>
            As of {moment(asOf)}
            {!travels(path) && <em className={styles.present}> (this view shows the present)</em>}
          </span>
        </p>
      )}
      <Moment asOf={asOf} onChange={setAsOf} />
      <Button small onClick={back}>
        Back to now
      </Button>
    </div>
  );
}

/** Returns whether a view shows the past; the others say so. */
function travels(path: string): boolean {
  return path === "/" || path === "/jobs" || /^\/jobs\/\d+$/.test(path) || path === "/workers";
}

function Moment(props: { asOf: string | undefined; onChange: (moment: string) => void }) {
  const id = useId();
  const timer = useRef<number>(undefined);
  const [back, setBack] = useState(minutesBack(props.asOf));
  useEffect(() => setBack(minutesBack(props.asOf)), [props.asOf]);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  function slide(event: ChangeEvent<HTMLInputElement>): void {
    const minutes = STOPS[-Number(event.target.value)] ?? 0;
    setBack(minutes);
    window.clearTimeout(timer.current);
    timer.current = window.setTimeout(() => {
      const at = Math.floor((Date.now() - minutes * MINUTE_MS) / MINUTE_MS) * MINUTE_MS;
      props.onChange(new Date(at).toISOString());
    }, SETTLE_MS);
  }
  function type(event: ChangeEvent<HTMLInputElement>): void {
    const at = Date.parse(event.target.value);
    if (!Number.isNaN(at)) props.onChange(new Date(Math.min(at, Date.now())).toISOString());
  }
  return (
    <>
      <label htmlFor={`${id}-slider`} className="visually-hidden">
        How long ago
      </label>
      <input
        id={`${id}-slider`}
        className={styles.slider}
        type="range"
        min={1 - STOPS.length}
        max={0}
        step={1}
        value={-nearestStop(back)}
        title={back === 0 ? "now" : `${duration(back * 60)} ago`}
        aria-valuetext={back === 0 ? "now" : `${duration(back * 60)} ago`}
        onChange={slide}
      />
      <label htmlFor={`${id}-time`} className="visually-hidden">
        Time to show
      </label>
      <input
        id={`${id}-time`}
        className={styles.time}
        type="datetime-local"
        step={1}
        value={localTime(props.asOf)}
        onChange={type}
      />
    </>
  );
}

/** Returns the number of the last stop that is not further back. */
function nearestStop(minutes: number): number {
  const next = STOPS.findIndex((stop) => stop > minutes);
  return next < 0 ? STOPS.length - 1 : Math.max(0, next - 1);
}

function minutesBack(asOf: string | undefined): number {
  const at = asOf === undefined ? Number.NaN : Date.parse(asOf);
  if (Number.isNaN(at)) return 0;
  return Math.max(0, Math.round((Date.now() - at) / MINUTE_MS));
}
