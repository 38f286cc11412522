import { useRouterState } from "@tanstack/react-router";
import { type ChangeEvent, useEffect, useId, useRef, useState } from "react";
import { Button } from "../ui/Button";
import { counted, localTime, moment } from "../ui/format";
import { Icon } from "../ui/Icon";
import { useAsOf, useSetAsOf } from "./asOf";
import styles from "./TimeTravel.module.css";

const MINUTE_MS = 60_000;
const REACH_MINUTES = 24 * 60;
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
    const minutes = -Number(event.target.value);
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
        Minutes back
      </label>
      <input
        id={`${id}-slider`}
        className={styles.slider}
        type="range"
        min={-REACH_MINUTES}
        max={0}
        step={1}
        value={-Math.min(back, REACH_MINUTES)}
        aria-valuetext={back === 0 ? "now" : `${counted(back, "minute")} ago`}
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

function minutesBack(asOf: string | undefined): number {
  const at = asOf === undefined ? Number.NaN : Date.parse(asOf);
  if (Number.isNaN(at)) return 0;
  return Math.max(0, Math.round((Date.now() - at) / MINUTE_MS));
}
