import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { choice, one, type RawSearch } from "../../search";
import { shellRoute } from "../../shell/shellRoute";

export const RANGES = ["1h", "6h", "24h", "7d"] as const;
type Range = (typeof RANGES)[number];
export const RANGE_NAMES: Record<Range, string> = {
  "1h": "hour",
  "6h": "6 hours",
  "24h": "24 hours",
  "7d": "7 days",
};

export interface OverviewSearch {
  /** How far back from now; without it an hour. */
  range?: Range;
  /** A range of its own, as times. */
  since?: string;
  until?: string;
  namespace?: string;
  /** The queue whose charts are shown; without it all together. */
  queue?: string;
}

export const overviewRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/",
  validateSearch: (raw: RawSearch): OverviewSearch => ({
    range: choice(raw, "range", RANGES),
    since: one(raw, "since"),
    until: one(raw, "until"),
    namespace: one(raw, "namespace"),
    queue: one(raw, "queue"),
  }),
  component: lazyRouteComponent(() => import("./OverviewView"), "OverviewView"),
});
