import { useSyncExternalStore } from "react";

const TICK_MS = 1_000;
const watchers = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  timer ??= setInterval(() => {
    if (document.hidden) return;
    now = Date.now();
    for (const one of watchers) one();
  }, TICK_MS);
  return () => {
    watchers.delete(watcher);
    if (watchers.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** Returns the time, at most a second late; all users share one timer. */
export function useNow(): number {
  return useSyncExternalStore(watch, () => now);
}
