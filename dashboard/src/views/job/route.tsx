import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { shellRoute } from "../../shell/shellRoute";

export const jobRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/jobs/$job",
  component: lazyRouteComponent(() => import("./JobView"), "JobView"),
});
