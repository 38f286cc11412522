import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { choice, many, type RawSearch } from "../../search";
import { shellRoute } from "../../shell/shellRoute";

export const WORK_STATES = ["queued", "running"] as const;

export interface PoolsSearch {
  /** The shapes of the work whose jobs are listed, and which of them. */
  shape?: string[];
  state?: (typeof WORK_STATES)[number];
}

export const poolsRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/pools",
  validateSearch: (raw: RawSearch): PoolsSearch => ({
    shape: many(raw, "shape")?.filter((text) => /^\d+$/.test(text)),
    state: choice(raw, "state", WORK_STATES),
  }),
  component: lazyRouteComponent(() => import("./PoolsView"), "PoolsView"),
});
