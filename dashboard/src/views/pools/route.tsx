import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { shellRoute } from "../../shell/shellRoute";

export const poolsRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/pools",
  component: lazyRouteComponent(() => import("./PoolsView"), "PoolsView"),
});
