import { Link } from "@tanstack/react-router";
import { count, duration } from "../../ui/format";
import { JobCount, type JobsFilter, jobsLink } from "../../ui/links";
import { PlainTable } from "../../ui/PlainTable";
import { Sparkline } from "../../ui/Sparkline";
import { countedTime, sum } from "./counted";
import type { Overview, QueueFigures } from "./OverviewView";
import type { OverviewSearch } from "./route";

/** The busiest queues; choosing one shows its charts. */
export function QueueTable({ overview, search }: { overview: Overview; search: OverviewSearch }) {
  const rows = overview.queues.map((one) => rowOf(one, overview, search));
  if (overview.others) rows.push(rowOf(overview.others, overview, search));
  return (
    <PlainTable
      label="Queues"
      head={[
        "Queue",
        "Queued",
        "Running",
        "Completed",
        "Failed",
        <span key="wait" title="90 % of the jobs waited at most this long until they started">
          Wait p90
        </span>,
        <span key="run" title="Half of the jobs ran at most this long (the median)">
          Run p50
        </span>,
        "Depth",
      ]}
      numbers={[1, 2, 3, 4, 5, 6]}
      rows={rows}
    />
  );
}

function rowOf(one: QueueFigures, overview: Overview, search: OverviewSearch) {
  const own: JobsFilter = { namespace: search.namespace, queue: one.queue ?? undefined };
  const range: JobsFilter = { ...own, ...countedTime(overview) };
  const link = (value: number, filter: JobsFilter) =>
    one.queue === null ? (
      <Link to="/queues">{count(value)}</Link>
    ) : (
      <JobCount value={value} filter={filter} />
    );
  return {
    key: one.queue ?? "",
    cells: [
      one.queue === null ? (
        <Link key="name" to="/queues">
          others
        </Link>
      ) : (
        <QueueName key="name" queue={one.queue} search={search} />
      ),
      link(one.now.queued ?? 0, { ...own, state: ["queued"] }),
      link(one.now.running ?? 0, { ...own, state: ["running"] }),
      link(sum(one.completed), { ...range, state: ["completed"] }),
      link(sum(one.failed), { ...range, state: ["failed"] }),
      <Seconds key="wait" values={one.wait_p90} filter={{ ...range, state: ["completed"] }} />,
      <Seconds key="run" values={one.run_p50} filter={{ ...range, state: ["completed"] }} />,
      <Sparkline
        key="depth"
        values={one.queued}
        label={`Jobs queued in ${one.queue ?? "others"} over time`}
      />,
    ],
  };
}

function QueueName({ queue, search }: { queue: string; search: OverviewSearch }) {
  const chosen = search.queue === queue;
  return (
    <Link
      to="/"
      search={{ ...search, queue: chosen ? undefined : queue }}
      aria-current={chosen ? "true" : undefined}
      title={chosen ? "Show all queues in the charts" : "Show this queue in the charts"}
    >
      {queue}
      {chosen && " ✓"}
    </Link>
  );
}

/** The last value that is known, and the jobs it comes from. */
function Seconds(props: { values: readonly (number | null)[]; filter: JobsFilter }) {
  const last = props.values.filter((value): value is number => value !== null).at(-1);
  if (last === undefined) return "–";
  if (props.filter.queue === undefined) return <Link to="/queues">{duration(last)}</Link>;
  return <Link {...jobsLink(props.filter)}>{duration(last)}</Link>;
}
