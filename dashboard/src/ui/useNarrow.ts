import { useSyncExternalStore } from "react";

const narrow = window.matchMedia("(max-width: 720px)");

/** Returns whether the window is as narrow as a phone. */
export function useNarrow(): boolean {
  return useSyncExternalStore(
    (watcher) => {
      narrow.addEventListener("change", watcher);
      return () => narrow.removeEventListener("change", watcher);
    },
    () => narrow.matches,
  );
}
