import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { flag, one, type RawSearch } from "../../search";
import { shellRoute } from "../../shell/shellRoute";

export interface AuditSearch {
  actor?: string;
  action?: string;
  namespace?: string;
  address?: string;
  refused?: true;
}

export const auditRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/audit",
  validateSearch: (raw: RawSearch): AuditSearch => ({
    actor: one(raw, "actor"),
    action: one(raw, "action"),
    namespace: one(raw, "namespace"),
    address: one(raw, "address"),
    refused: flag(raw, "refused"),
  }),
  component: lazyRouteComponent(() => import("./AuditView"), "AuditView"),
});
