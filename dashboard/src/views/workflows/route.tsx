import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { many, one, type RawSearch } from "../../search";
import { shellRoute } from "../../shell/shellRoute";

export interface WorkflowsSearch {
  state?: string[];
  name?: string;
  /** A part of the name. */
  text?: string;
  namespace?: string;
  label?: string[];
  key?: string;
}

export function workflowsSearch(raw: RawSearch): WorkflowsSearch {
  return {
    state: many(raw, "state"),
    name: one(raw, "name"),
    text: one(raw, "text"),
    namespace: one(raw, "namespace"),
    label: many(raw, "label"),
    key: one(raw, "key"),
  };
}

export const workflowsRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/workflows",
  validateSearch: workflowsSearch,
  component: lazyRouteComponent(() => import("./WorkflowsView"), "WorkflowsView"),
});
