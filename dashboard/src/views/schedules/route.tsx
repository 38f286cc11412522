import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { one, type RawSearch } from "../../search";
import { shellRoute } from "../../shell/shellRoute";

export interface SchedulesSearch {
  namespace?: string;
  /** The schedule that is shown with its history, and the namespace it is in. */
  show?: string;
  in?: string;
}

export function schedulesSearch(raw: RawSearch): SchedulesSearch {
  return { namespace: one(raw, "namespace"), show: one(raw, "show"), in: one(raw, "in") };
}

export const schedulesRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/schedules",
  validateSearch: schedulesSearch,
  component: lazyRouteComponent(() => import("./SchedulesView"), "SchedulesView"),
});
