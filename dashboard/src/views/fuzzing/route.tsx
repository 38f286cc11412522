import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { choice, one, type RawSearch } from "../../search";
import { shellRoute } from "../../shell/shellRoute";

export const TABS = ["findings", "schedule", "builds", "statistics", "coverage"] as const;
export type FuzzTab = (typeof TABS)[number];

export interface FuzzingSearch {
  solver?: string;
  tab?: FuzzTab;
  /** The key of a finding whose report is open. */
  finding?: string;
  /** A commit whose newly reached functions are listed. */
  commit?: string;
}

export const fuzzingRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/fuzzing",
  validateSearch: (raw: RawSearch): FuzzingSearch => ({
    solver: one(raw, "solver"),
    tab: choice(raw, "tab", TABS),
    finding: one(raw, "finding"),
    commit: one(raw, "commit"),
  }),
  component: lazyRouteComponent(() => import("./FuzzingView"), "FuzzingView"),
});
