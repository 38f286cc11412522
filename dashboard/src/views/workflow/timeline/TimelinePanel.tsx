import { Link } from "@tanstack/react-router";
import { Button } from "../../../ui/Button";
import { Empty } from "../../../ui/Empty";
import { ErrorBox } from "../../../ui/ErrorBox";
import { SelectField } from "../../../ui/Field";
import { count, counted, duration } from "../../../ui/format";
import { Loading } from "../../../ui/Loading";
import { jobsLink } from "../../../ui/links";
import { type Timeline, useTimeline, type Window, type Workflow } from "../queries";
import type { WorkflowSearch } from "../route";
import { Lanes } from "./Lanes";
import styles from "./Timeline.module.css";

interface Props {
  workflow: Workflow;
  search: WorkflowSearch;
  onChange: (search: Partial<WorkflowSearch>) => void;
}

const PAGE = 100;

/** When attempts ran, by worker or by name; idle times are drawn short. */
export function TimelinePanel({ workflow, search, onChange }: Props) {
  const window: Window = {
    by: search.by ?? "worker",
    since: search.since ?? 0,
    until: search.until ?? 0,
    first: search.first ?? 0,
  };
  const found = useTimeline(workflow, window);
  if (found.isPending) return <Loading rows={8} label="Loading the timeline" />;
  if (!found.data) {
    return <ErrorBox error={found.error} onRetry={() => void found.refetch()} />;
  }
  const shown = found.data;
  if (shown.runs === 0) return <Empty title="No job has started yet" />;
  const zoomed = search.since !== undefined || search.until !== undefined;
  const span = shown.shown_until - shown.shown_from;
  function zoom(factor: number): void {
    const middle = (shown.shown_from + shown.shown_until) / 2;
    const half = Math.max(1, (span * factor) / 2);
    const since = Math.max(shown.start, Math.round(middle - half));
    const until = Math.min(shown.end, Math.round(middle + half));
    const whole = since <= shown.start && until >= shown.end;
    onChange(whole ? { since: undefined, until: undefined } : { since, until });
  }
  return (
    <div className={styles.panel}>
      <div className={styles.tools}>
        <SelectField
          label="Lanes by"
          value={window.by}
          onChange={(event) =>
            onChange({ by: event.target.value === "name" ? "name" : "worker", first: undefined })
          }
        >
          <option value="worker">worker</option>
          <option value="name">name of the job</option>
        </SelectField>
        <Button small onClick={() => zoom(0.5)}>
          Zoom in
        </Button>
        <Button small disabled={!zoomed} onClick={() => zoom(2)}>
          Zoom out
        </Button>
        <Button
          small
          disabled={!zoomed}
          onClick={() => onChange({ since: undefined, until: undefined })}
        >
          Show all
        </Button>
        <Summary timeline={shown} workflow={workflow.id} />
      </div>
      <Lanes
        timeline={shown}
        byWorker={window.by === "worker"}
        workflow={workflow.id}
        onSelect={(since, until) => onChange({ since, until })}
      />
      <Pages timeline={shown} onFirst={(first) => onChange({ first: first || undefined })} />
    </div>
  );
}

function Summary({ timeline, workflow }: { timeline: Timeline; workflow: number }) {
  const idle = timeline.gaps.reduce((sum, gap) => sum + gap.end - gap.start, 0);
  return (
    <p className={styles.summary}>
      <Link {...jobsLink({ workflow })}>{counted(timeline.runs, "attempt")}</Link> in{" "}
      {duration((timeline.end - timeline.start) / 1000)}
      {timeline.gaps.length > 0 &&
        `, idle for ${duration(idle / 1000)} (${counted(timeline.gaps.length, "gap")}, drawn short)`}
      . Drag over the lanes to zoom.
    </p>
  );
}

function Pages({ timeline, onFirst }: { timeline: Timeline; onFirst: (first: number) => void }) {
  if (timeline.lanes_total <= timeline.lanes.length) return null;
  const last = timeline.first + timeline.lanes.length;
  return (
    <div className={styles.tools}>
      <span>
        Lanes {count(timeline.first + 1)} to {count(last)} of {count(timeline.lanes_total)}
      </span>
      <Button
        small
        disabled={timeline.first === 0}
        onClick={() => onFirst(Math.max(0, timeline.first - PAGE))}
      >
        Previous
      </Button>
      <Button small disabled={last >= timeline.lanes_total} onClick={() => onFirst(last)}>
        Next
      </Button>
    </div>
  );
}
