import type { Schemas } from "../../api/client";
import { duration, exact } from "../../ui/format";
import { Time } from "../../ui/Time";
import { useNow } from "../../ui/useNow";
import styles from "./Job.module.css";

/** When a job will likely start or end, with the range. */
export function Estimate({ job }: { job: Schemas["Job"] }) {
  const start = job.estimated_start;
  const end = job.estimated_end;
  if (job.overdue !== null) {
    return (
      <p className={styles.soft}>It runs {duration(job.overdue)} longer than 90 % of such jobs.</p>
    );
  }
  if (!start && !end) return null;
  return (
    <p className={styles.soft}>
      {start && <Range what="Likely to start" range={start} />}
      {start && end && "; "}
      {end && <Range what={start ? "to end" : "Likely to end"} range={end} />}
    </p>
  );
}

const NEAR = 0.8;

/** Warns once most of the timeout of a running job has passed. */
export function NearTimeout({ timeout, from, to }: { timeout: number; from: string; to: string }) {
  const now = useNow();
  const [start, end] = [Date.parse(from), Date.parse(to)];
  if (now < start + NEAR * (end - start)) return null;
  return (
    <p className={styles.near} role="status">
      It will be stopped <Time at={to} />, when its timeout of {duration(timeout)} has passed.
    </p>
  );
}

function Range({ what, range }: { what: string; range: Schemas["Estimate"] }) {
  const between = `${exact(Date.parse(range.earliest))} – ${exact(Date.parse(range.latest))}`;
  return (
    <span title={between}>
      {what} <Time at={range.likely} /> (between <Time at={range.earliest} /> and{" "}
      <Time at={range.latest} />)
    </span>
  );
}
