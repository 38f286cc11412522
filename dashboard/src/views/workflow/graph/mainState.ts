import { lookOf } from "../../../ui/states";

const WEIGHTS: Record<string, number> = { bad: 4, warn: 3, active: 2, waiting: 1, good: 0 };

/** Returns the state that a group is shown in: the worst of its jobs, as long as one is there. */
export function mainState(states: Record<string, number>): string {
  let found = "completed";
  let most = -1;
  for (const [state, jobs] of Object.entries(states)) {
    const weight = WEIGHTS[lookOf(state).tone] ?? 0;
    if (jobs > 0 && weight > most) {
      most = weight;
      found = state;
    }
  }
  return found;
}
