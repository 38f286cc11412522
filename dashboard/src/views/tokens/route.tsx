import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { shellRoute } from "../../shell/shellRoute";

export const tokensRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/tokens",
  component: lazyRouteComponent(() => import("./TokensView"), "TokensView"),
});
