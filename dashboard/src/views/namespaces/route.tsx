import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { shellRoute } from "../../shell/shellRoute";

export const namespacesRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/namespaces",
  component: lazyRouteComponent(() => import("./NamespacesView"), "NamespacesView"),
});
