import { useEffect, useRef } from "react";

/** A key, or two after each other, and what they do. */
export interface Shortcut {
  keys: string;
  label: string;
  run: () => void;
}

const PAIR_MS = 1_200;

/** Runs shortcuts while nobody types into a field and no dialog is open. */
export function useShortcuts(shortcuts: readonly Shortcut[]): void {
  const latest = useRef(shortcuts);
  latest.current = shortcuts;
  useEffect(() => {
    let first = "";
    let timer: ReturnType<typeof setTimeout> | undefined;
    function onKeyDown(event: KeyboardEvent): void {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (document.querySelector("dialog[open]")) return;
      const typed = first ? `${first} ${event.key}` : event.key;
      const found = latest.current.find((one) => one.keys === typed);
      const begins = latest.current.some((one) => one.keys.startsWith(`${typed} `));
      clearTimeout(timer);
      first = begins ? typed : "";
      if (begins) {
        timer = setTimeout(() => {
          first = "";
        }, PAIR_MS);
      }
      if (!found) return;
      event.preventDefault();
      found.run();
    }
    window.addEventListener("keydown", onKeyDown);
    return () => {
      clearTimeout(timer);
      window.removeEventListener("keydown", onKeyDown);
    };
  }, []);
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target.closest("textarea, select")) return true;
  return target instanceof HTMLInputElement && target.type !== "checkbox";
}
