import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { choice, flag, one, type RawSearch } from "../../search";
import { shellRoute } from "../../shell/shellRoute";

export const SORTS = ["name", "-name", "depth", "-depth", "running", "-running"] as const;

export interface QueuesSearch {
  /** A part of the name. */
  name?: string;
  /** Only those with jobs that wait or run, and paused ones. */
  busy?: true;
  /** A column; after a minus, the most first. */
  sort?: (typeof SORTS)[number];
}

export const queuesRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/queues",
  validateSearch: (raw: RawSearch): QueuesSearch => ({
    name: one(raw, "name"),
    busy: flag(raw, "busy"),
    sort: choice(raw, "sort", SORTS),
  }),
  component: lazyRouteComponent(() => import("./QueuesView"), "QueuesView"),
});
