import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { shellRoute } from "../../shell/shellRoute";

export const auditRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/audit",
  component: lazyRouteComponent(() => import("./AuditView"), "AuditView"),
});
