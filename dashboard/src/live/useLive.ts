import { type QueryKey, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useSyncExternalStore } from "react";
import { useAsOf } from "../shell/asOf";
import { type Change, type LiveState, live } from "./stream";

/**
 * Calls `onChange` when something changes among `topics`: "jobs", "workers", "workflows", "pools",
 * "queues", "schedules", "templates", or single things such as "job:7" and "workflow:3".
 * Silent while the page shows the past.
 */
export function useLive(topics: readonly string[], onChange: (change: Change) => void): void {
  const latest = useRef(onChange);
  latest.current = onChange;
  const past = useAsOf() !== undefined;
  const wanted = topics.join("\n");
  useEffect(() => {
    if (past || !wanted) return;
    return live.listen(wanted.split("\n"), (change) => latest.current(change));
  }, [wanted, past]);
}

/** Asks again for the queries whose key begins with one of `keys` when something changes. */
export function useLiveQueries(topics: readonly string[], ...keys: readonly QueryKey[]): void {
  const client = useQueryClient();
  useLive(topics, () => {
    for (const queryKey of keys) void client.invalidateQueries({ queryKey });
  });
}

/** Returns whether the page follows what happens. */
export function useLiveState(): LiveState {
  return useSyncExternalStore(live.watch, () => live.state);
}
