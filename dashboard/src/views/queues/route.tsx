import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { shellRoute } from "../../shell/shellRoute";

export const queuesRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/queues",
  component: lazyRouteComponent(() => import("./QueuesView"), "QueuesView"),
});
