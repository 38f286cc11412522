import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { one, type RawSearch, whole } from "../../search";
import { shellRoute } from "../../shell/shellRoute";

export interface TemplatesSearch {
  namespace?: string;
  /** The template that is shown, the namespace it is in, and its version. */
  show?: string;
  in?: string;
  version?: number;
}

export function templatesSearch(raw: RawSearch): TemplatesSearch {
  return {
    namespace: one(raw, "namespace"),
    show: one(raw, "show"),
    in: one(raw, "in"),
    version: whole(raw, "version"),
  };
}

export const templatesRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/templates",
  validateSearch: templatesSearch,
  component: lazyRouteComponent(() => import("./TemplatesView"), "TemplatesView"),
});
