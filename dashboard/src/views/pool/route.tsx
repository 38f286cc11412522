import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { choice, type RawSearch } from "../../search";
import { shellRoute } from "../../shell/shellRoute";

export const RANGES = ["1h", "6h", "1d", "7d"] as const;
export type Range = (typeof RANGES)[number];

export interface PoolSearch {
  range?: Range;
}

export const poolRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/pools/$pool",
  validateSearch: (raw: RawSearch): PoolSearch => ({ range: choice(raw, "range", RANGES) }),
  component: lazyRouteComponent(() => import("./PoolView"), "PoolView"),
});
