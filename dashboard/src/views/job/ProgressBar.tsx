import styles from "./Job.module.css";
import { pretty } from "./job";

/** How far a job is, as it says itself: a number, a part of a total with a text, or anything. */
export function ProgressBar({ progress }: { progress: unknown }) {
  const { share, text } = readProgress(progress);
  return (
    <div className={styles.progress}>
      {share !== undefined && (
        <progress className={styles.bar} max={1} value={share} aria-label="Progress" />
      )}
      <span>{text}</span>
    </div>
  );
}

function readProgress(value: unknown): { share?: number; text: string } {
  if (typeof value === "number") {
    const share = value > 1 ? value / 100 : value;
    return { share: Math.min(1, Math.max(0, share)), text: `${Math.round(share * 100)} %` };
  }
  if (typeof value === "object" && value !== null && "done" in value && "total" in value) {
    const { done, total, text } = value as { done: unknown; total: unknown; text?: unknown };
    const words = typeof text === "string" && text ? `, ${text}` : "";
    if (typeof done === "number" && typeof total === "number" && total > 0) {
      const share = Math.min(1, Math.max(0, done / total));
      return { share, text: `${done} of ${total} (${Math.round(share * 100)} %)${words}` };
    }
    return { text: `${String(done)}${words}` };
  }
  return { text: typeof value === "string" ? value : pretty(value) };
}
