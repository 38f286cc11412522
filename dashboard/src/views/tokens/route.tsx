import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { choice, one, type RawSearch } from "../../search";
import { shellRoute } from "../../shell/shellRoute";

export interface TokensSearch {
  name?: string;
  show?: "all";
}

export const tokensRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/tokens",
  validateSearch: (raw: RawSearch): TokensSearch => ({
    name: one(raw, "name"),
    show: choice(raw, "show", ["all"]),
  }),
  component: lazyRouteComponent(() => import("./TokensView"), "TokensView"),
});
