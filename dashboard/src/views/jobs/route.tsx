import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { flag, many, one, type RawSearch, whole, wholes } from "../../search";
import { shellRoute } from "../../shell/shellRoute";
import type { JobsFilter } from "../../ui/links";

export function jobsSearch(raw: RawSearch): JobsFilter {
  return {
    id: wholes(raw, "id"),
    state: many(raw, "state"),
    queue: one(raw, "queue"),
    task: one(raw, "task"),
    namespace: one(raw, "namespace"),
    name: one(raw, "name"),
    label: many(raw, "label"),
    workflow: whole(raw, "workflow"),
    submitted_by: one(raw, "submitted_by"),
    failure: many(raw, "failure"),
    dead: flag(raw, "dead"),
    text: one(raw, "text"),
    regex: one(raw, "regex"),
    since: one(raw, "since"),
    until: one(raw, "until"),
    created_from: one(raw, "created_from"),
    created_to: one(raw, "created_to"),
    finished_from: one(raw, "finished_from"),
    finished_to: one(raw, "finished_to"),
    sort: one(raw, "sort"),
  };
}

export const jobsRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/jobs",
  validateSearch: jobsSearch,
  component: lazyRouteComponent(() => import("./JobsView"), "JobsView"),
});
