import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { one, type RawSearch } from "../search";
import { rootRoute } from "./rootRoute";

export const signInRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/sign-in",
  validateSearch: (raw: RawSearch): { next?: string } => ({ next: one(raw, "next") }),
  component: lazyRouteComponent(() => import("./SignIn"), "SignIn"),
});
