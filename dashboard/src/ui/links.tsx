import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { count } from "./format";

/** Which jobs a number stands for; the same filters as the Jobs view has in its URL. */
export interface JobsFilter {
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

export function JobLink({ id, children }: { id: number; children?: ReactNode }) {
  return (
    <Link to="/jobs/$job" params={{ job: String(id) }}>
      {children ?? id}
    </Link>
  );
}

export function WorkflowLink({ id, children }: { id: number; children?: ReactNode }) {
  return (
    <Link to="/workflows/$workflow" params={{ workflow: String(id) }}>
      {children ?? id}
    </Link>
  );
}

export function WorkerLink({ name, children }: { name: string; children?: ReactNode }) {
  return (
    <Link to="/workers/$worker" params={{ worker: name }}>
      {children ?? name}
    </Link>
  );
}

export function PoolLink({ name, children }: { name: string; children?: ReactNode }) {
  return (
    <Link to="/pools/$pool" params={{ pool: name }}>
      {children ?? name}
    </Link>
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
