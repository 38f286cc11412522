import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { many, one, type RawSearch, whole } from "../../search";
import { shellRoute } from "../../shell/shellRoute";
import type { JobsFilter } from "../../ui/links";

export interface JobsSearch extends JobsFilter {
  /** A field, with "-" in front for descending. */
  sort?: string;
}

export function jobsSearch(raw: RawSearch): JobsSearch {
  return {
    state: many(raw, "state"),
    queue: one(raw, "queue"),
    task: one(raw, "task"),
    namespace: one(raw, "namespace"),
    name: one(raw, "name"),
    label: many(raw, "label"),
    workflow: whole(raw, "workflow"),
    worker: one(raw, "worker"),
    submitted_by: one(raw, "submitted_by"),
    failure: one(raw, "failure"),
    text: one(raw, "text"),
    regex: one(raw, "regex"),
    since: one(raw, "since"),
    until: one(raw, "until"),
    sort: one(raw, "sort"),
  };
}

export const jobsRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/jobs",
  validateSearch: jobsSearch,
  component: lazyRouteComponent(() => import("./JobsView"), "JobsView"),
});
