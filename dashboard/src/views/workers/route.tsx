import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { many, one, type RawSearch } from "../../search";
import { shellRoute } from "../../shell/shellRoute";

export interface WorkersSearch {
  state?: string[];
  kind?: string;
  pool?: string;
  /** A part of the name. */
  name?: string;
  /** Clauses as jobs have them: memory>=4GiB. */
  requires?: string[];
}

/** Returns the filters as the API takes them. */
export function filterOf({ state, kind, pool, name, requires }: WorkersSearch): WorkersSearch {
  return { state, kind, pool, name, requires };
}

export const workersRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/workers",
  validateSearch: (raw: RawSearch): WorkersSearch => ({
    state: many(raw, "state"),
    kind: one(raw, "kind"),
    pool: one(raw, "pool"),
    name: one(raw, "name"),
    requires: many(raw, "requires"),
  }),
  component: lazyRouteComponent(() => import("./WorkersView"), "WorkersView"),
});
