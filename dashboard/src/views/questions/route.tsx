import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { shellRoute } from "../../shell/shellRoute";

export const questionsRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/questions",
  component: lazyRouteComponent(() => import("./QuestionsView"), "QuestionsView"),
});
