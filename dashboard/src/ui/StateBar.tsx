import { Link, type LinkProps } from "@tanstack/react-router";
import { count } from "./format";
import { type JobsFilter, jobsLink } from "./links";
import styles from "./StateBar.module.css";
import { StateMark } from "./StateMark";
import { ENDED_STATES, JOB_STATES, lookOf } from "./states";

type Counts = Record<string, number>;

/** Returns the states that occur, what is done first. */
export function inOrder(counts: Counts): [string, number][] {
  const order = [...JOB_STATES].reverse();
  const rank = (state: string): number => order.indexOf(state as (typeof JOB_STATES)[number]);
  return Object.entries(counts)
    .filter(([, jobs]) => jobs > 0)
    .sort(([a], [b]) => weight(a) - weight(b) || rank(a) - rank(b));
}

const WEIGHTS: Record<string, number> = { good: 0, bad: 1, warn: 2, active: 3, waiting: 4 };

function weight(state: string): number {
  return WEIGHTS[lookOf(state).tone] ?? 5;
}

/** A bar with a part for each state; the words beside it say the same. */
export function StateBar({ counts, label }: { counts: Counts; label?: string }) {
  const parts = inOrder(counts);
  const text = parts.map(([state, jobs]) => `${count(jobs)} ${lookOf(state).label}`).join(", ");
  return (
    <div className={styles.bar} role="img" aria-label={label ?? text} title={text}>
      {parts.map(([state, jobs]) => (
        <span
          key={state}
          className={styles.part}
          data-tone={lookOf(state).tone}
          data-ended={ENDED_STATES.includes(state) || undefined}
          style={{ flexGrow: jobs }}
        />
      ))}
    </div>
  );
}

interface CountsProps {
  counts: Counts;
  /** The jobs that are counted, or where else those of a state are. */
  filter?: JobsFilter;
  place?: (state: string) => LinkProps;
}

/** The number of jobs in each state, as links to them. */
export function StateCounts({ counts, filter, place }: CountsProps) {
  const placeOf = place ?? ((state: string) => jobsLink({ ...filter, state: [state] }));
  return (
    <span className={styles.counts}>
      {inOrder(counts).map(([state, jobs]) => {
        const look = lookOf(state);
        return (
          <Link
            key={state}
            className={styles.count}
            data-tone={look.tone}
            title={look.label}
            {...placeOf(state)}
          >
            <StateMark mark={look.mark} />
            <span>
              {count(jobs)} {look.label}
            </span>
          </Link>
        );
      })}
    </span>
  );
}
