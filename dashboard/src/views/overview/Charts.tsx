import { Link } from "@tanstack/react-router";
import { lazy } from "react";
import type { Series } from "../../ui/Chart";
import { ChartCard, ChartGrid } from "../../ui/ChartCard";
import { count, duration } from "../../ui/format";
import { jobsLink } from "../../ui/links";
import type { Tone } from "../../ui/states";
import { countedTime, sum } from "./counted";
import type { Overview, QueueFigures } from "./OverviewView";

const Chart = lazy(() => import("../../ui/Chart"));

const WORKER_TONES: Record<string, Tone> = {
  online: "good",
  draining: "warn",
  unhealthy: "warn",
  offline: "waiting",
  disabled: "bad",
  probation: "warn",
  pending_approval: "active",
};
const FAILURE_TONES: readonly (Tone | "accent")[] = ["bad", "warn", "active", "accent", "waiting"];

interface Props {
  overview: Overview;
  /** The one that is shown; undefined: all. */
  namespace: string | undefined;
  shown: QueueFigures;
  onRange: (from: number, to: number) => void;
  /** Shows the jobs behind a point: those that were there then, or that ended in its slot. */
  onPoint: (at: number, what: "there" | "ended" | "failed") => void;
}

/** Depth, throughput, times, workers and failures over time. */
export function Charts({ overview, namespace, shown, onRange, onPoint }: Props) {
  const times = overview.times;
  const title = shown.queue ? ` in ${shown.queue}` : "";
  const workers = Object.entries(overview.workers).filter(([, values]) => values.some(Boolean));
  const failures = Object.entries(overview.failures);
  const pools = Object.entries(overview.pools);
  const chart = (
    label: string,
    series: Series[],
    more: { format?: (value: number) => string; points?: "there" | "ended" } = {},
  ) => (
    <ChartCard label={label}>
      <Chart
        label={label}
        times={times}
        series={series}
        onRange={onRange}
        format={more.format}
        onPoint={(at) => more.points && onPoint(at, more.points)}
      />
    </ChartCard>
  );
  return (
    <ChartGrid>
      {chart(
        `Jobs${title}`,
        [
          { label: "queued", values: shown.queued, tone: "waiting", filled: true },
          { label: "running", values: shown.running, tone: "active" },
          { label: "blocked", values: shown.blocked, tone: "warn", dashed: true },
        ],
        { points: "there" },
      )}
      {chart(
        `Throughput${title}, by ${stepName(overview.step)}`,
        [
          { label: "submitted", values: shown.submitted, tone: "waiting", dashed: true },
          { label: "completed", values: shown.completed, tone: "good", filled: true },
          { label: "failed", values: shown.failed, tone: "bad" },
          { label: "rejected", values: shown.rejected, tone: "warn" },
        ],
        { points: "ended" },
      )}
      {chart(`Wait until the start${title}`, timesOf(shown.wait_p50, shown.wait_p90), {
        format: duration,
        points: "ended",
      })}
      {chart(`Run time${title}`, timesOf(shown.run_p50, shown.run_p90), {
        format: duration,
        points: "ended",
      })}
      {workers.length > 0 &&
        chart(
          "Workers",
          workers.map(([state, values]) => ({
            label: state.replace("_", " "),
            values,
            tone: WORKER_TONES[state] ?? "waiting",
          })),
        )}
      {failures.length > 0 && (
        <ChartCard
          label="Failures by class"
          beside={failures.map(([name, values]) => (
            <Link key={name} {...jobsLink({ failure: name, namespace, ...countedTime(overview) })}>
              {name} {count(sum(values))}
            </Link>
          ))}
        >
          <Chart
            label="Failures by class"
            times={times}
            onRange={onRange}
            onPoint={(at) => onPoint(at, "failed")}
            series={failures.map(([name, values], at) => ({
              label: name,
              values,
              tone: FAILURE_TONES[at % FAILURE_TONES.length],
            }))}
          />
        </ChartCard>
      )}
      {pools.length > 0 &&
        chart(
          "Workers of pools",
          pools.map(([name, values], at) => ({
            label: name,
            values,
            tone: FAILURE_TONES[(at + 2) % FAILURE_TONES.length],
          })),
        )}
    </ChartGrid>
  );
}

/** Half of the jobs took at most `half`, 90 % at most `most`; the words are those of the API. */
function timesOf(half: (number | null)[], most: (number | null)[]): Series[] {
  return [
    { label: "p50", values: half, tone: "active" },
    { label: "p90", values: most, tone: "warn", dashed: true },
  ];
}

function stepName(seconds: number): string {
  if (seconds >= 3_600) return "the hour";
  return seconds >= 600 ? "ten minutes" : "the minute";
}
