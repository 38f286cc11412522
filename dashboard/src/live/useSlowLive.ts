import { type QueryKey, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { useLive } from "./useLive";

const MIN_MS = 5_000;

/**
 * Asks again when something changes, but every five seconds at most: for figures that are added up
 * from many jobs.
 */
export function useSlowLive(topics: readonly string[], ...keys: readonly QueryKey[]): void {
  const client = useQueryClient();
  const asked = useRef(0);
  const timer = useRef<number>(undefined);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  useLive(topics, () => {
    if (timer.current !== undefined) return;
    const left = Math.max(0, asked.current + MIN_MS - Date.now());
    timer.current = window.setTimeout(() => {
      timer.current = undefined;
      asked.current = Date.now();
      for (const queryKey of keys) void client.invalidateQueries({ queryKey });
    }, left);
  });
}
