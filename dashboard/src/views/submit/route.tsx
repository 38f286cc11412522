import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { one, type RawSearch, whole } from "../../search";
import { shellRoute } from "../../shell/shellRoute";

export interface SubmitSearch {
  /** The task, or the path of a function. */
  task?: string;
  /** A template instead of a task. */
  template?: string;
  namespace?: string;
  /** A job whose arguments and options the form begins with. */
  like?: number;
}

export const submitRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/submit",
  validateSearch: (raw: RawSearch): SubmitSearch => ({
    task: one(raw, "task"),
    template: one(raw, "template"),
    namespace: one(raw, "namespace"),
    like: whole(raw, "like"),
  }),
  component: lazyRouteComponent(() => import("./SubmitView"), "SubmitView"),
});
