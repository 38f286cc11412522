import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { choice, one, type RawSearch } from "../../search";
import { shellRoute } from "../../shell/shellRoute";

export const RANGES = ["15m", "1h", "6h", "1d", "7d"] as const;
export type Range = (typeof RANGES)[number];

export interface WorkerSearch {
  /** How far back the history goes. */
  range?: Range;
  /** A part of the names in the metadata. */
  find?: string;
}

export const workerRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/workers/$worker",
  validateSearch: (raw: RawSearch): WorkerSearch => ({
    range: choice(raw, "range", RANGES),
    find: one(raw, "find"),
  }),
  component: lazyRouteComponent(() => import("./WorkerView"), "WorkerView"),
});
