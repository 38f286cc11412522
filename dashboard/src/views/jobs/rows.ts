import type { QueryClient } from "@tanstack/react-query";
import type { Schemas } from "../../api/client";

export type Job = Schemas["Job"];

export const MAX_SOME = 200; // jobs that the server answers at once
const KEPT = 4_000; // jobs in memory; of others only the number
const NEAR = 1_000; // rows beside those in sight that are not forgotten

/** The jobs of a list: the numbers of all that were loaded, and those near what is in sight. */
export class JobRows {
  private readonly jobs = new Map<number, Job>();
  private readonly known = new Set<number>();
  private readonly asked = new Set<number>();
  private readonly gone = new Set<number>();
  /** The highest number of a job of the list. */
  newest = 0;

  keep(jobs: readonly Job[]): void {
    for (const job of jobs) {
      this.jobs.set(job.id, job);
      this.known.add(job.id);
      this.asked.delete(job.id);
      this.newest = Math.max(this.newest, job.id);
    }
  }

  job(id: number | undefined): Job | undefined {
    return id === undefined ? undefined : this.jobs.get(id);
  }

  /** Returns whether a job is in the list, loaded or not. */
  has(id: number): boolean {
    return this.known.has(id);
  }

  /** Returns which of these have to be loaded and nobody has asked for yet. */
  missing(ids: readonly number[]): number[] {
    const found = ids.filter((id) => !this.jobs.has(id) && !this.asked.has(id));
    for (const id of found) this.asked.add(id);
    return found;
  }

  /** Marks those that the server does not have any more. */
  lose(ids: readonly number[]): void {
    for (const id of ids) if (!this.jobs.has(id)) this.gone.add(id);
  }

  isGone(id: number | undefined): boolean {
    return id !== undefined && this.gone.has(id);
  }

  /** These could not be loaded; they may be asked for again. */
  giveUp(ids: readonly number[]): void {
    for (const id of ids) this.asked.delete(id);
  }

  /** Forgets rows that changed, except those that are loaded again where they are. */
  forget(changed: ReadonlySet<number> | "all", except: ReadonlySet<number>): void {
    for (const id of changed === "all" ? [...this.jobs.keys()] : changed) {
      if (!except.has(id)) this.jobs.delete(id);
    }
  }

  /** Forgets rows that are far from those in sight, if there are many. */
  forgetBeyond(ids: readonly number[], first: number, last: number): void {
    if (this.jobs.size <= KEPT) return;
    const near = new Set(ids.slice(Math.max(0, first - NEAR), last + NEAR));
    for (const id of this.jobs.keys()) if (!near.has(id)) this.jobs.delete(id);
  }
}

/** Returns the rows of a list; they last as long as its pages, for when somebody comes back. */
export function keptRows(client: QueryClient, key: readonly unknown[]): JobRows {
  const name = ["job rows", ...key];
  const before = client.getQueryData<JobRows>(name);
  if (before) return before;
  const rows = new JobRows();
  client.setQueryData(name, rows);
  return rows;
}
