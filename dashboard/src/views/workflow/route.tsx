import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { choice, flag, many, one, type RawSearch, whole } from "../../search";
import { shellRoute } from "../../shell/shellRoute";

export const TABS = ["graph", "timeline", "jobs", "compare", "reactions"] as const;
export type TabKey = (typeof TABS)[number];

export interface WorkflowSearch {
  tab?: TabKey;
  /** Groups of the graph that are open. */
  open?: string[];
  /** The graph as a table. */
  table?: true;
  by?: "worker" | "name";
  since?: number;
  until?: number;
  first?: number;
  /** The workflow to compare with. */
  with?: number;
  /** The group of the graph whose jobs are listed, and the states they are in. */
  group?: string;
  state?: string[];
}

export function workflowSearch(raw: RawSearch): WorkflowSearch {
  return {
    tab: choice(raw, "tab", TABS),
    open: many(raw, "open"),
    table: flag(raw, "table"),
    by: choice(raw, "by", ["worker", "name"]),
    since: whole(raw, "since"),
    until: whole(raw, "until"),
    first: whole(raw, "first"),
    with: whole(raw, "with"),
    group: one(raw, "group"),
    state: many(raw, "state"),
  };
}

export const workflowRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/workflows/$workflow",
  validateSearch: workflowSearch,
  component: lazyRouteComponent(() => import("./WorkflowView"), "WorkflowView"),
});
