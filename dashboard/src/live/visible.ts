/** Calls `changed` when somebody looks at this page, or at another tab. Returns what ends that. */
export function whenVisibilityChanges(changed: () => void): () => void {
  document.addEventListener("visibilitychange", changed);
  return () => document.removeEventListener("visibilitychange", changed);
}

/** Returns when somebody looks at this page, or when the signal comes. */
export function untilVisible(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (!document.hidden || signal.aborted) {
      resolve();
      return;
    }
    const forget = whenVisibilityChanges(() => {
      if (!document.hidden) finish();
    });
    function finish(): void {
      forget();
      signal.removeEventListener("abort", finish);
      resolve();
    }
    signal.addEventListener("abort", finish);
  });
}

/** Returns a signal that comes with `outer`, or when nobody looks at this page any more. */
export function untilHidden(outer: AbortSignal): { signal: AbortSignal; forget: () => void } {
  const ended = new AbortController();
  const end = () => ended.abort();
  outer.addEventListener("abort", end);
  const ignore = whenVisibilityChanges(() => {
    if (document.hidden) end();
  });
  return {
    signal: ended.signal,
    forget: () => {
      outer.removeEventListener("abort", end);
      ignore();
    },
  };
}
