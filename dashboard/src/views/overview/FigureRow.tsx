import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Figure } from "../../ui/Facts";
import { count, counted } from "../../ui/format";
import { JobCount, type JobsFilter } from "../../ui/links";
import { Card } from "../../ui/Page";
import { lookOf } from "../../ui/states";
import { countedTime, sum } from "./counted";
import styles from "./Overview.module.css";
import type { Overview } from "./OverviewView";
import { type OverviewSearch, RANGE_NAMES } from "./route";

const RUNNING = ["assigned", "running", "canceling", "timed_out"];
const WAITING = ["queued", "retrying"];
const BLOCKED = ["blocked", "suspended"];

/** The numbers of now and of the range; each leads to the jobs or workers that it counts. */
export function FigureRow({ overview, search }: { overview: Overview; search: OverviewSearch }) {
  const { total } = overview;
  const own: JobsFilter = { namespace: search.namespace };
  const range: JobsFilter = { ...own, ...countedTime(overview) };
  const now = (states: string[]) => states.reduce((sum, one) => sum + (total.now[one] ?? 0), 0);
  return (
    <Card className={styles.figures}>
      <Group when="Now">
        <Figure label="queued">
          <JobCount value={now(WAITING)} filter={{ ...own, state: WAITING }} />
        </Figure>
        <Figure label="running">
          <JobCount value={now(RUNNING)} filter={{ ...own, state: RUNNING }} />
        </Figure>
        <Figure label="blocked">
          <JobCount value={now(BLOCKED)} filter={{ ...own, state: BLOCKED }} />
        </Figure>
        {Object.entries(overview.workers_now).map(([state, workers]) => (
          <Figure
            key={state}
            label={`${counted(workers, "worker").replace(/^\S+ /, "")} ${lookOf(state).label}`}
          >
            <Link to="/workers" search={{ state: statesOf(state) }}>
              {count(workers)}
            </Link>
          </Figure>
        ))}
      </Group>
      <Group when={rangeOf(search)}>
        <Figure label="submitted">
          <JobCount value={sum(total.submitted)} filter={range} />
        </Figure>
        <Figure label="completed">
          <JobCount value={sum(total.completed)} filter={{ ...range, state: ["completed"] }} />
        </Figure>
        <Figure label="failed">
          <JobCount value={sum(total.failed)} filter={{ ...range, state: ["failed"] }} />
        </Figure>
        <Figure label="rejected">
          <JobCount value={sum(total.rejected)} filter={{ ...range, state: ["rejected"] }} />
        </Figure>
        <Figure label="canceled">
          <JobCount value={sum(total.canceled)} filter={{ ...range, state: ["canceled"] }} />
        </Figure>
      </Group>
    </Card>
  );
}

function Group({ when, children }: { when: string; children: ReactNode }) {
  return (
    <div className={styles.group}>
      <p className={styles.when}>{when}</p>
      <div className={styles.row}>{children}</div>
    </div>
  );
}

function rangeOf({ since, range }: OverviewSearch): string {
  return since ? "In the chosen time" : `In the last ${RANGE_NAMES[range ?? "1h"]}`;
}

/** Workers that are online are shown as idle or busy. */
function statesOf(status: string): string[] {
  return status === "online" ? ["idle", "busy"] : [status];
}
