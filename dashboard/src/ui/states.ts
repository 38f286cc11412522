/** How each state looks: its tone (colour) and its mark (shape). Every state also has its name. */
export type Tone = "waiting" | "active" | "good" | "warn" | "bad";
export type Mark = "ring" | "dot" | "half" | "check" | "cross" | "bar" | "pause" | "triangle";

export interface Look {
  tone: Tone;
  mark: Mark;
  label: string;
}

const LOOKS: Record<string, Look> = {
  // Jobs
  blocked: { tone: "waiting", mark: "pause", label: "blocked" },
  queued: { tone: "waiting", mark: "ring", label: "queued" },
  assigned: { tone: "active", mark: "ring", label: "assigned" },
  running: { tone: "active", mark: "half", label: "running" },
  suspended: { tone: "waiting", mark: "pause", label: "suspended" },
  canceling: { tone: "warn", mark: "bar", label: "canceling" },
  timed_out: { tone: "warn", mark: "triangle", label: "timed out" },
  retrying: { tone: "warn", mark: "half", label: "retrying" },
  completed: { tone: "good", mark: "check", label: "completed" },
  failed: { tone: "bad", mark: "cross", label: "failed" },
  canceled: { tone: "waiting", mark: "bar", label: "canceled" },
  aborted: { tone: "bad", mark: "bar", label: "aborted" },
  rejected: { tone: "bad", mark: "triangle", label: "rejected" },
  skipped: { tone: "waiting", mark: "bar", label: "skipped" },
  // Workflows, schedules and pools
  waiting: { tone: "waiting", mark: "ring", label: "waiting" },
  dispatching: { tone: "active", mark: "half", label: "running" },
  started: { tone: "active", mark: "half", label: "started" },
  ended: { tone: "good", mark: "check", label: "ended" },
  stalled: { tone: "warn", mark: "triangle", label: "stalled" },
  succeeded: { tone: "good", mark: "check", label: "succeeded" },
  paused: { tone: "warn", mark: "pause", label: "paused" },
  active: { tone: "active", mark: "dot", label: "active" },
  // Workers
  idle: { tone: "good", mark: "ring", label: "idle" },
  busy: { tone: "active", mark: "half", label: "busy" },
  online: { tone: "good", mark: "dot", label: "online" },
  healthy: { tone: "good", mark: "dot", label: "healthy" },
  offline: { tone: "waiting", mark: "ring", label: "offline" },
  draining: { tone: "warn", mark: "half", label: "draining" },
  drained: { tone: "waiting", mark: "pause", label: "drained" },
  disabled: { tone: "bad", mark: "bar", label: "disabled" },
  unhealthy: { tone: "bad", mark: "triangle", label: "unhealthy" },
  probation: { tone: "warn", mark: "triangle", label: "on probation" },
  pending_approval: { tone: "warn", mark: "ring", label: "pending approval" },
};

/** Every state of a job, in the order of its life. */
export const JOB_STATES = [
  "blocked",
  "queued",
  "assigned",
  "running",
  "suspended",
  "canceling",
  "timed_out",
  "retrying",
  "completed",
  "failed",
  "canceled",
  "aborted",
  "rejected",
  "skipped",
] as const;

export function lookOf(state: string): Look {
  return LOOKS[state] ?? { tone: "waiting", mark: "ring", label: state.replaceAll("_", " ") };
}

/** The states in which nothing more happens to a job. */
export const ENDED_STATES = ["completed", "failed", "canceled", "rejected", "aborted", "skipped"];
