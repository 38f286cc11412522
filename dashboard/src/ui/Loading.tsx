import styles from "./Loading.module.css";

/** Rows that are not there yet. */
export function Loading({ rows = 3, label = "Loading" }: { rows?: number; label?: string }) {
  return (
    <div className={styles.loading} role="status" aria-label={label}>
      {Array.from({ length: rows }, (_, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: these rows have nothing but a place.
        <span key={place} className={styles.row} />
      ))}
    </div>
  );
}
