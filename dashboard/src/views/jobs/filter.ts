import type { Schemas } from "../../api/client";
import { exact } from "../../ui/format";
import type { JobsFilter } from "../../ui/links";
import { ENDED_STATES } from "../../ui/states";

/** What the list, the count and the preview of an action take. */
export type Where = Omit<JobsFilter, "since" | "until" | "sort" | "failure"> & {
  failure?: string[];
};

const ENDED = new Set(ENDED_STATES);

export const SINCE: Record<string, { label: string; seconds: number }> = {
  "15m": { label: "15 minutes", seconds: 900 },
  "1h": { label: "hour", seconds: 3_600 },
  "24h": { label: "24 hours", seconds: 86_400 },
  "7d": { label: "7 days", seconds: 604_800 },
  "30d": { label: "30 days", seconds: 2_592_000 },
};

export const SORTS: Record<string, string> = {
  newest: "Newest first",
  oldest: "Oldest first",
  running: "Running longest",
  priority: "Taken next",
  finished: "Ended last",
};

/** Returns the filter of a URL as the API takes it; "the last hour" begins an hour before `now`. */
export function whereOf(search: JobsFilter, now: number): Where {
  const { since, until, sort: _, failure, ...rest } = search;
  const where: Where = { ...rest, failure: failure === undefined ? undefined : [failure].flat() };
  const range = since === undefined ? undefined : SINCE[since];
  // Whole minutes, so that the same question is asked again and again.
  const minute = Math.floor(now / 60_000) * 60_000;
  const from = range ? new Date(minute - range.seconds * 1_000).toISOString() : since;
  if (from === undefined && until === undefined) return where;
  return isAboutEnds(search)
    ? { ...where, finished_from: from, finished_to: until }
    : { ...where, created_from: from, created_to: until };
}

/** Returns whether the filter shows jobs that ended, so that a range of time means their end. */
export function isAboutEnds(search: JobsFilter): boolean {
  const states = search.state ?? [];
  return search.failure !== undefined || (states.length > 0 && states.every((s) => ENDED.has(s)));
}

/** Returns the same for an action on all jobs that match. */
export function bulkWhere(where: Where): Schemas["Where"] {
  return { ...where };
}

/** Returns the conditions as people read them, by the parameter of the URL. */
export function describe(
  search: JobsFilter,
): { key: string; label: string; without: JobsFilter }[] {
  const found: { key: string; label: string; without: JobsFilter }[] = [];
  const failure = search.failure === undefined ? undefined : [search.failure].flat();
  // The time that the page shows is in the header.
  const left = { sort: undefined, since: undefined, until: undefined, as_of: undefined };
  const names = { ...search, failure, ...left };
  for (const [key, value] of Object.entries(names)) {
    const name = key as keyof JobsFilter;
    if (name === "id" && Array.isArray(value)) {
      const label = value.length === 1 ? `job ${value[0]}` : `these ${value.length} jobs`;
      found.push({ key, label, without: { ...search, id: undefined } });
    } else if (Array.isArray(value)) {
      for (const item of value) {
        const rest = value.filter((other) => other !== item);
        const without = { ...search, [name]: rest.length > 0 ? rest : undefined };
        found.push({ key: `${key}=${item}`, label: `${words(name)}: ${item}`, without });
      }
    } else if (value !== undefined) {
      const label = value === true ? words(name) : `${words(name)}: ${String(value)}`;
      found.push({ key, label, without: { ...search, [name]: undefined } });
    }
  }
  const what = isAboutEnds(search) ? "ended" : "created";
  if (search.since) {
    const range = SINCE[search.since];
    const label = range
      ? `${what} in the last ${range.label}`
      : `${what} after ${time(search.since)}`;
    found.push({ key: "since", label, without: { ...search, since: undefined } });
  }
  if (search.until) {
    const label = `${what} before ${time(search.until)}`;
    found.push({ key: "until", label, without: { ...search, until: undefined } });
  }
  return found;
}

function time(text: string): string {
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? text : exact(ms);
}

const WORDS: Partial<Record<keyof JobsFilter, string>> = {
  submitted_by: "submitted by",
  created_from: "created after",
  created_to: "created before",
  finished_from: "ended after",
  finished_to: "ended before",
  regex: "expression",
  dead: "failed for good",
};

function words(name: keyof JobsFilter): string {
  return WORDS[name] ?? name;
}
