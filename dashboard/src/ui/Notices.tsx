import { useSyncExternalStore } from "react";
import { adviceFor, inWords } from "../api/errors";
import { IconButton } from "./Button";
import styles from "./Notices.module.css";

interface Notice {
  id: number;
  text: string;
  tone: "good" | "bad" | "info";
}

const SHOWN_MS = 6_000;
let notices: readonly Notice[] = [];
let lastId = 0;
const watchers = new Set<() => void>();

function change(next: readonly Notice[]): void {
  notices = next;
  for (const watcher of watchers) watcher();
}

function dismiss(id: number): void {
  change(notices.filter((notice) => notice.id !== id));
}

/** Shows a short message at the edge of the page for some seconds. */
export function notify(text: string, tone: Notice["tone"] = "good"): void {
  lastId += 1;
  const id = lastId;
  change([...notices.slice(-3), { id, text, tone }]);
  setTimeout(() => dismiss(id), SHOWN_MS);
}

/** Shows why something failed. */
export function notifyError(problem: unknown): void {
  const advice = adviceFor(problem);
  notify(advice ? `${inWords(problem)} ${advice}` : inWords(problem), "bad");
}

export function Notices() {
  const shown = useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => notices,
  );
  return (
    <div className={styles.notices} role="status" aria-live="polite">
      {shown.map((notice) => (
        <div key={notice.id} className={styles.notice} data-tone={notice.tone}>
          <span>{notice.text}</span>
          <IconButton icon="close" label="Dismiss" small onClick={() => dismiss(notice.id)} />
        </div>
      ))}
    </div>
  );
}
