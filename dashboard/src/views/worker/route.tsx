import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { shellRoute } from "../../shell/shellRoute";

export const workerRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/workers/$worker",
  component: lazyRouteComponent(() => import("./WorkerView"), "WorkerView"),
});
