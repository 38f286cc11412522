import { Link, useRouter } from "@tanstack/react-router";
import type { MouseEvent, ReactNode } from "react";
import { API_BASE } from "../base";
import { stringifySearch } from "../search";
import { count } from "./format";

/** Which jobs a number stands for; the same filters as the Jobs view has in its URL. */
export interface JobsFilter {
  id?: number[];
  state?: string[];
  queue?: string;
  task?: string;
  namespace?: string;
  name?: string;
  label?: string[];
  workflow?: number;
  submitted_by?: string;
  failure?: string | string[];
  /** Jobs whose failures nobody retries. */
  dead?: true;
  text?: string;
  regex?: string;
  /** At most this long ago ("1h", "7d"), or since a time; of jobs that ended, when they did. */
  since?: string;
  until?: string;
  created_from?: string;
  created_to?: string;
  finished_from?: string;
  finished_to?: string;
  sort?: string;
}

/** Returns what a `Link` needs to show these jobs: `<Link {...jobsLink({ state: ["failed"] })}>`. */
export function jobsLink(filter: JobsFilter) {
  return { to: "/jobs", search: filter } as const;
}

type Place =
  | { to: "/jobs/$job"; params: { job: string } }
  | { to: "/workflows/$workflow"; params: { workflow: string } }
  | { to: "/workers/$worker"; params: { worker: string } }
  | { to: "/pools/$pool"; params: { pool: string } };

/**
 * A link to one thing. Tables have hundreds, and the router's own link takes most of the time of
 * rendering a row: this one knows its address and leaves the rest to the click.
 */
function PlaceLink({ place, children }: { place: Place; children: ReactNode }) {
  const router = useRouter();
  const [, folder = "", name = ""] = /^\/(\w+)\/\$(\w+)$/.exec(place.to) ?? [];
  const value = (place.params as Record<string, string>)[name] ?? "";
  const asOf = (router.state.location.search as { as_of?: string }).as_of;
  const query = asOf === undefined ? "" : `?as_of=${encodeURIComponent(asOf)}`;
  function onClick(event: MouseEvent): void {
    const isOrdinary = event.button === 0 && !event.defaultPrevented;
    if (!isOrdinary || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    void router.navigate(place);
  }
  return (
    <a
      href={`${API_BASE}/${folder}/${encodeURIComponent(value)}${query}`}
      onClick={onClick}
      onMouseEnter={() => void router.preloadRoute(place).catch(() => undefined)}
    >
      {children}
    </a>
  );
}

export function JobLink({ id, children }: { id: number; children?: ReactNode }) {
  return (
    <PlaceLink place={{ to: "/jobs/$job", params: { job: String(id) } }}>
      {children ?? id}
    </PlaceLink>
  );
}

export function WorkflowLink({ id, children }: { id: number; children?: ReactNode }) {
  return (
    <PlaceLink place={{ to: "/workflows/$workflow", params: { workflow: String(id) } }}>
      {children ?? id}
    </PlaceLink>
  );
}

export function WorkerLink({ name, children }: { name: string; children?: ReactNode }) {
  return (
    <PlaceLink place={{ to: "/workers/$worker", params: { worker: name } }}>
      {children ?? name}
    </PlaceLink>
  );
}

export function PoolLink({ name, children }: { name: string; children?: ReactNode }) {
  return (
    <PlaceLink place={{ to: "/pools/$pool", params: { pool: name } }}>{children ?? name}</PlaceLink>
  );
}

/** A value in the list of jobs: narrows it to jobs that have it, too. */
export function NarrowLink(props: { by: JobsFilter; className?: string; children: ReactNode }) {
  const router = useRouter();
  const before = router.state.location.search as JobsFilter;
  const label = props.by.label && [...new Set([...(before.label ?? []), ...props.by.label])];
  const search: JobsFilter = { ...before, ...props.by, ...(label && { label }) };
  function onClick(event: MouseEvent): void {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) {
      return;
    }
    event.preventDefault();
    void router.navigate({ to: "/jobs", search });
  }
  return (
    <a
      href={`${API_BASE}/jobs${stringifySearch({ ...search })}`}
      className={props.className}
      onClick={onClick}
    >
      {props.children}
    </a>
  );
}

/** A number of jobs that leads to them. `atLeast`: it was counted up to a bound. */
export function JobCount(props: { value: number; filter: JobsFilter; atLeast?: boolean }) {
  return (
    <Link {...jobsLink(props.filter)}>
      {count(props.value)}
      {props.atLeast ? "+" : ""}
    </Link>
  );
}
