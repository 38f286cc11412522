/** The states of a workflow. */
export const WORKFLOW_STATES = [
  "queued",
  "dispatching",
  "canceling",
  "completed",
  "failed",
  "canceled",
] as const;

const ENDED = new Set<string>(["completed", "failed", "canceled"]);

export function hasEnded(state: string): boolean {
  return ENDED.has(state);
}
