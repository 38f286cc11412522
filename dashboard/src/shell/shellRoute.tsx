import { createRoute, retainSearchParams } from "@tanstack/react-router";
import { one, type RawSearch } from "../search";
import { fixedMoment } from "./asOf";
import { rootRoute } from "./rootRoute";
import { Shell } from "./Shell";

export interface ShellSearch {
  /** The moment that the page shows; without it: now. */
  as_of?: string;
}

/** The frame around every view; views name it as their parent. */
export const shellRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: "shell",
  validateSearch: (raw: RawSearch): ShellSearch => {
    const asked = one(raw, "as_of");
    return { as_of: asked === undefined ? undefined : fixedMoment(asked) };
  },
  search: { middlewares: [retainSearchParams<ShellSearch>(["as_of"])] },
  component: Shell,
});
