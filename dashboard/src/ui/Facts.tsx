import type { ReactNode } from "react";
import styles from "./Facts.module.css";

/** Names and values beside each other. Values that are undefined are left out. */
export function Facts({ items }: { items: readonly (readonly [string, ReactNode])[] }) {
  return (
    <dl className={styles.facts}>
      {items
        .filter(([, value]) => value !== undefined && value !== null)
        .map(([name, value]) => (
          <div key={name} className={styles.row}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

/** A number with what it counts; `children` is the number, best as a link. */
export function Figure({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div className={styles.figure} role="group" aria-label={label}>
      <span className={styles.number}>{children}</span>
      <span className={styles.label}>{label}</span>
    </div>
  );
}
