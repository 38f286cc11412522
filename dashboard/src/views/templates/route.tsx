import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { shellRoute } from "../../shell/shellRoute";

export const templatesRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/templates",
  component: lazyRouteComponent(() => import("./TemplatesView"), "TemplatesView"),
});
