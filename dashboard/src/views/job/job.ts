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

/** Returns a value as JSON for people. */
export function pretty(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? "";
}
