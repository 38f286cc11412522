import type { JobsFilter } from "../../ui/links";
import type { Overview } from "./OverviewView";

/** Returns the time that the figures add up: whole slots, as far as the server has counted. */
export function countedTime(overview: Overview): Pick<JobsFilter, "since" | "until"> {
  const [first] = overview.times;
  return {
    since: first === undefined ? overview.since : new Date(first * 1_000).toISOString(),
    until: overview.counted_until,
  };
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
