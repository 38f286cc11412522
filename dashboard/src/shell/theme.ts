import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";

const NAME = "windlass.theme"; // public/theme.js reads it before the first paint
const watchers = new Set<() => void>();

function current(): Theme {
  const chosen = document.documentElement.dataset.theme;
  return chosen === "dark" || chosen === "light" ? chosen : "system";
}

export function setTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    if (theme === "system") localStorage.removeItem(NAME);
    else localStorage.setItem(NAME, theme);
  } catch {
    // Storage is turned off: it counts until the page is closed.
  }
  for (const watcher of watchers) watcher();
}

export function useTheme(): Theme {
  return useSyncExternalStore((watcher) => {
    watchers.add(watcher);
    return () => watchers.delete(watcher);
  }, current);
}

/** Returns whether the page is dark now, whoever decided it. */
export function isDark(): boolean {
  const theme = current();
  return theme === "system" ? matchMedia("(prefers-color-scheme: dark)").matches : theme === "dark";
}
