import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { shellRoute } from "../../shell/shellRoute";

export const submitRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/submit",
  component: lazyRouteComponent(() => import("./SubmitView"), "SubmitView"),
});
