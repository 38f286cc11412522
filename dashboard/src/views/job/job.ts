import type { Schemas } from "../../api/client";

type Job = Schemas["Job"];

const WAITING = ["blocked", "queued", "retrying", "suspended"];
const ENDED = ["completed", "failed", "canceled", "aborted", "rejected", "skipped"];

/** Returns whether a job can still change by itself. */
export function isOpen(job: Job): boolean {
  return !ENDED.includes(job.state);
}

/** Returns whether a job waits for something other than its own work. */
export function isWaiting(job: Job): boolean {
  return WAITING.includes(job.state);
}

/** Returns the function that a job calls by its path, without its module. */
export function functionOf(job: Job): string | undefined {
  const path = (job.args as { function?: unknown } | null)?.function;
  return job.task === "python" && typeof path === "string" ? path.split(":").at(-1) : undefined;
}

/** Returns a value as JSON for people. */
export function pretty(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? "";
}
