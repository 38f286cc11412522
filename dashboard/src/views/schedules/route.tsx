import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { shellRoute } from "../../shell/shellRoute";

export const schedulesRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/schedules",
  component: lazyRouteComponent(() => import("./SchedulesView"), "SchedulesView"),
});
