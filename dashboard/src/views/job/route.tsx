import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { choice, type RawSearch, whole } from "../../search";
import { shellRoute } from "../../shell/shellRoute";

export const TABS = ["overview", "log", "waiting", "time", "reproduce", "history"] as const;
export type TabKey = (typeof TABS)[number];

export interface JobSearch {
  tab?: TabKey;
  /** The attempt whose log is shown; the newest without it. */
  attempt?: number;
  /** A line of the log. */
  line?: number;
}

export const jobRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/jobs/$job",
  validateSearch: (raw: RawSearch): JobSearch => ({
    tab: choice(raw, "tab", TABS),
    attempt: whole(raw, "attempt"),
    line: whole(raw, "line"),
  }),
  component: lazyRouteComponent(() => import("./JobView"), "JobView"),
});
