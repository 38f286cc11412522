import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { shellRoute } from "../../shell/shellRoute";

export const fuzzingRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/fuzzing",
  component: lazyRouteComponent(() => import("./FuzzingView"), "FuzzingView"),
});
