import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { shellRoute } from "../../shell/shellRoute";

export const workersRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/workers",
  component: lazyRouteComponent(() => import("./WorkersView"), "WorkersView"),
});
