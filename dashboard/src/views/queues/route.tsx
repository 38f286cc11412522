import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { one, type RawSearch } from "../../search";
import { shellRoute } from "../../shell/shellRoute";

export interface QueuesSearch {
  /** A part of the name. */
  name?: string;
}

export const queuesRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/queues",
  validateSearch: (raw: RawSearch): QueuesSearch => ({ name: one(raw, "name") }),
  component: lazyRouteComponent(() => import("./QueuesView"), "QueuesView"),
});
