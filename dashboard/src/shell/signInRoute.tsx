import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { flag, one, type RawSearch } from "../search";
import { rootRoute } from "./rootRoute";

interface SignInSearch {
  /** Where the person was. */
  next?: string;
  /** They were signed in until now. */
  ended?: true;
}

export const signInRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/sign-in",
  validateSearch: (raw: RawSearch): SignInSearch => ({
    next: one(raw, "next"),
    ended: flag(raw, "ended"),
  }),
  component: lazyRouteComponent(() => import("./SignIn"), "SignIn"),
});
