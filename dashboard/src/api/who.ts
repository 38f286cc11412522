import { useQuery } from "@tanstack/react-query";
import { live } from "../live/stream";
import { useAsOf } from "../shell/asOf";
import { answer, api, type Schemas } from "./client";

export type WhoAmI = Schemas["WhoAmI"];

export const WHO_KEY = ["whoami"] as const;

/** Returns who is signed in, and what they may do: only look, while the page shows the past. */
export function useWho() {
  const past = useAsOf() !== undefined;
  return useQuery({
    queryKey: WHO_KEY,
    queryFn: async ({ signal }) => {
      const who = await answer(api.GET("/api/v1/whoami", { signal }));
      live.goOnFrom(who.at); // What views read after this is not older.
      return who;
    },
    staleTime: 60_000,
    select: past ? onlyLooking : undefined,
  });
}

function onlyLooking(who: WhoAmI): WhoAmI {
  return { ...who, actions: who.actions.filter((action) => action.startsWith("read-")) };
}

/**
 * Returns whether the caller may do `action` (such as "change-jobs"), in `namespace` if one is
 * named. Actions that concern the whole fleet need no namespace. Offer nothing else.
 */
export function useMay(action: string, namespace?: string | null): boolean {
  const who = useWho().data;
  return who !== undefined && may(who, action, namespace);
}

export function may(who: WhoAmI, action: string, namespace?: string | null): boolean {
  if (!who.actions.includes(action)) return false;
  return !namespace || who.namespaces.length === 0 || who.namespaces.includes(namespace);
}

/** Returns whether the caller may change a job that `owner` submitted. */
export function mayChange(who: WhoAmI, owner: string | null, namespace: string): boolean {
  const action = owner === who.name ? "change-jobs" : "change-all-jobs";
  return may(who, action, namespace);
}
