import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { flag, one, type RawSearch } from "../../search";
import { shellRoute } from "../../shell/shellRoute";

export interface AuditSearch {
  actor?: string;
  action?: string;
  namespace?: string;
  address?: string;
  refused?: true;
  /** Only calls from one time on, and before another. */
  since?: string;
  until?: string;
}

export function auditSearch(raw: RawSearch): AuditSearch {
  return {
    actor: one(raw, "actor"),
    action: one(raw, "action"),
    namespace: one(raw, "namespace"),
    address: one(raw, "address"),
    refused: flag(raw, "refused"),
    since: one(raw, "since"),
    until: one(raw, "until"),
  };
}

export const auditRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/audit",
  validateSearch: auditSearch,
  component: lazyRouteComponent(() => import("./AuditView"), "AuditView"),
});
