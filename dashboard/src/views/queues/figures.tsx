import { useQuery } from "@tanstack/react-query";
import { answer, api, type Schemas } from "../../api/client";
import { duration } from "../../ui/format";
import { JobCount } from "../../ui/links";
import { Time } from "../../ui/Time";

type Rate = Schemas["QueueRate"];

const WEAKEST = "process"; // what every job has anyway
const FRESH_MS = 30_000; // the server adds figures up about twice a minute

/** How many jobs of a queue ended so in the last hour; the busiest queues have such figures. */
export function LastHour({ queue, state }: { queue: string; state: "completed" | "failed" }) {
  const { data } = useQuery({
    queryKey: ["queues", "last hour"],
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/overview", { signal, params: { query: { since: "1h" } } })),
    staleTime: FRESH_MS,
    refetchInterval: FRESH_MS,
  });
  const figures = data?.queues.find((one) => one.queue === queue);
  if (!data || (!figures && data.others)) return "–";
  const value = figures?.[state].reduce((sum, one) => sum + one, 0) ?? 0;
  const { since, until } = data;
  return <JobCount value={value} filter={{ queue, state: [state], since, until }} />;
}

/** How long jobs of a queue may run that do not say so, if it has a time of its own. */
export function timeoutOf(queue: Schemas["QueueInfo"]): string | undefined {
  if (typeof queue.timeout !== "number") return queue.timeout ?? undefined;
  return queue.timeout % 60 === 0 ? `${queue.timeout / 60}m` : `${queue.timeout}s`;
}

/** What limits the jobs of a queue, in words. */
export function limitsOf(queue: Schemas["QueueInfo"]): string {
  const told = [
    queue.max_running && `${queue.max_running} at once`,
    queue.max_per_worker && `${queue.max_per_worker} on each worker`,
    queue.isolation && queue.isolation !== WEAKEST && `isolation ${queue.isolation}`,
    queue.preempts && "preempts others",
    queue.timeout && `timeout ${timeoutOf(queue)}`,
  ].filter(Boolean);
  return told.join(", ") || "–";
}

/** The rates under which jobs of a queue wait, and when the next one may start. */
export function QueueRates({ rates }: { rates: readonly Rate[] }) {
  if (rates.length === 0) return "–";
  return rates.map((rate, at) => (
    <span key={`${rate.namespace} ${rate.key}`}>
      {at > 0 && "; "}
      {rate.key}: {rate.used} of {rate.max} in {duration(rate.seconds)}
      {rate.next_at && (
        <>
          , next <Time at={rate.next_at} />
        </>
      )}
    </span>
  ));
}
