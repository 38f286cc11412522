import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { ApiError } from "../../api/errors";
import { Button } from "../../ui/Button";
import { ErrorBox } from "../../ui/ErrorBox";
import { count, counted, duration } from "../../ui/format";
import { JobLink } from "../../ui/links";
import { Card } from "../../ui/Page";
import { StateBadge } from "../../ui/StateBadge";
import { StateBar, StateCounts } from "../../ui/StateBar";
import { ENDED_STATES } from "../../ui/states";
import { Approvals } from "./Approvals";
import styles from "./Progress.module.css";
import { type Progress, useProgress, type Workflow } from "./queries";

/** How far the workflow is, when it may end, its longest chain, and what waits for approval. */
export function ProgressPanel({ workflow }: { workflow: Workflow }) {
  const found = useProgress(workflow);
  const progress = found.data;
  const jobs = Object.values(workflow.counts).reduce((sum, one) => sum + one, 0);
  const ended = ENDED_STATES.reduce((sum, state) => sum + (workflow.counts[state] ?? 0), 0);
  const percent = jobs > 0 ? (ended / jobs) * 100 : 0;
  // The graph says it, and the rest of this panel does not need it.
  const isTooLarge = found.error instanceof ApiError && found.error.code === "graph_too_large";
  return (
    <Card>
      <div className={styles.panel}>
        <div className={styles.line}>
          <strong className={styles.share}>
            <Link
              to="/workflows/$workflow"
              params={{ workflow: String(workflow.id) }}
              search={{ tab: "jobs", state: ENDED_STATES }}
              title="Jobs that ended"
            >
              {`${Math.floor(percent)} %`}
            </Link>
          </strong>
          <StateBar counts={workflow.counts} />
        </div>
        <StateCounts counts={workflow.counts} filter={{ workflow: workflow.id }} />
        {found.isError && !isTooLarge && (
          <ErrorBox error={found.error} onRetry={() => void found.refetch()} />
        )}
        {progress && <Forecast progress={progress} />}
        {progress && <Chain progress={progress} />}
        {progress && progress.approvals.length > 0 && (
          <Approvals workflow={workflow} progress={progress} />
        )}
      </div>
    </Card>
  );
}

function Forecast({ progress }: { progress: Progress }) {
  const { left } = progress;
  if (progress.done === progress.jobs) return null;
  return (
    <p className={styles.forecast}>
      {left ? (
        <>
          {progress.approvals.length > 0
            ? "Once it is approved, it takes about "
            : "Ends in about "}
          <strong>{duration(left.likely / 1000)}</strong>
          {left.high > left.low && (
            <>
              {" "}
              ({duration(left.low / 1000)} to {duration(left.high / 1000)})
            </>
          )}
          , if {counted(progress.at_once, "job")} {progress.at_once === 1 ? "runs" : "run"} at a
          time.
        </>
      ) : (
        "No forecast: no such jobs have run yet."
      )}
      {left &&
        progress.unknown > 0 &&
        ` Without ${counted(progress.unknown, "job")} of unknown length.`}
    </p>
  );
}

const FEW = 6;

function Chain({ progress }: { progress: Progress }) {
  const [all, setAll] = useState(false);
  const path = progress.critical_path;
  if (path.jobs.length < 2) return null;
  const longest = [...path.jobs].sort((a, b) => b.ms - a.ms).slice(0, FEW);
  const kept = new Set(longest.map((one) => one.job));
  const shown = all ? path.jobs : path.jobs.filter((one) => kept.has(one.job));
  return (
    <div className={styles.chain}>
      <p>
        Critical path: {counted(path.length, "job")}, {duration(path.total_ms / 1000)}
        {path.left.likely > 0 && `, of which ${duration(path.left.likely / 1000)} are left`}
      </p>
      <ol className={styles.steps}>
        {shown.map((one) => (
          <li key={one.job}>
            <StateBadge state={one.state} plain label="" />
            <JobLink id={one.job}>{one.name}</JobLink>
            <span className={styles.took}>{one.known ? duration(one.ms / 1000) : "unknown"}</span>
          </li>
        ))}
      </ol>
      {path.jobs.length > FEW && (
        <Button kind="quiet" small onClick={() => setAll(!all)} aria-expanded={all}>
          {all ? "Show the longest only" : `Show all ${count(path.jobs.length)}`}
        </Button>
      )}
      {all && path.left_out > 0 && (
        <p>Not listed: {counted(path.left_out, "job")} in the middle of the chain.</p>
      )}
    </div>
  );
}
