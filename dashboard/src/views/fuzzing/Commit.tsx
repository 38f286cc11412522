import { count } from "../../ui/format";
import styles from "./Fuzzing.module.css";

/** A commit, short; its title is the whole hash. */
export function Commit({ hash }: { hash: string | null | undefined }) {
  if (!hash) return <span>unknown</span>;
  return <code title={hash}>{hash.slice(0, 12)}</code>;
}

/** Says how many are not shown. */
export function Cut({ shown, of, noun }: { shown: number; of: number; noun: string }) {
  if (of <= shown) return null;
  return (
    <p className={styles.soft}>
      {count(shown)} of {count(of)} {noun}s
    </p>
  );
}
