import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { shellRoute } from "../../shell/shellRoute";

export const poolRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/pools/$pool",
  component: lazyRouteComponent(() => import("./PoolView"), "PoolView"),
});
