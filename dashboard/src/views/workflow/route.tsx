import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { shellRoute } from "../../shell/shellRoute";

export const workflowRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/workflows/$workflow",
  component: lazyRouteComponent(() => import("./WorkflowView"), "WorkflowView"),
});
