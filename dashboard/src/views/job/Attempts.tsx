import { Fragment, useState } from "react";
import type { Schemas } from "../../api/client";
import { Button } from "../../ui/Button";
import { counted, duration } from "../../ui/format";
import { WorkerLink } from "../../ui/links";
import { StateBadge } from "../../ui/StateBadge";
import { lookOf } from "../../ui/states";
import { useNow } from "../../ui/useNow";
import styles from "./Attempts.module.css";

type Job = Schemas["Job"];
type Attempt = Schemas["AttemptInfo"];

// Of a job with many attempts, the first and the newest say most.
const FIRST = 2;
const LAST = 8;
const FEW = 2; // too few to hide

/** The attempts of a job on one line of time; each leads to its log. */
export function Attempts({ job, onAttempt }: { job: Job; onAttempt: (attempt: number) => void }) {
  const now = useNow();
  const begin = Date.parse(job.created_at);
  const end = job.finished_at ? Date.parse(job.finished_at) : Math.max(now, begin + 1);
  const place = (ms: number) => `${(100 * (ms - begin)) / Math.max(1, end - begin)}%`;
  const [isWhole, setWhole] = useState(false);
  const hidden = isWhole ? 0 : Math.max(0, job.attempts.length - FIRST - LAST);
  const shown =
    hidden > FEW ? [...job.attempts.slice(0, FIRST), ...job.attempts.slice(-LAST)] : job.attempts;
  return (
    <ol className={styles.attempts}>
      {shown.map((attempt, at) => {
        const [from, to] = spanOf(attempt, end);
        return (
          <Fragment key={`${attempt.number} ${attempt.assigned_at} ${attempt.finished_at}`}>
            {hidden > FEW && at === FIRST && (
              <li className={styles.hidden}>
                <Button kind="quiet" small icon="right" onClick={() => setWhole(true)}>
                  Show {counted(hidden, "attempt")} between
                </Button>
              </li>
            )}
            <li className={styles.attempt}>
              {attempt.handed_back ? (
                <span title="Handed back unstarted">–</span>
              ) : (
                <button
                  type="button"
                  className={styles.name}
                  onClick={() => onAttempt(attempt.number)}
                  aria-label={`Log of attempt ${attempt.number}`}
                >
                  {attempt.number}
                </button>
              )}
              <StateBadge state={attempt.state} plain />
              <div className={styles.track}>
                <span
                  className={styles.span}
                  data-tone={lookOf(attempt.state).tone}
                  style={{ left: place(from), width: `max(3px, ${place(begin + to - from)})` }}
                />
              </div>
              <span className={styles.length}>
                {attempt.started_at ? duration((to - from) / 1000) : "–"}
              </span>
              <span className={styles.worker}>
                {attempt.worker && <WorkerLink name={attempt.worker} />}
              </span>
              <span className={styles.why}>
                {attempt.handed_back && "handed back unstarted "}
                {attempt.failure
                  ? `${attempt.failure.class}${attempt.failure.message ? `: ${attempt.failure.message}` : ""}`
                  : ""}
              </span>
            </li>
          </Fragment>
        );
      })}
    </ol>
  );
}

function spanOf(attempt: Attempt, end: number): [number, number] {
  const from = Date.parse(attempt.started_at ?? attempt.assigned_at ?? "") || end;
  return [from, attempt.finished_at ? Date.parse(attempt.finished_at) : end];
}
