import { type ReactNode, Suspense } from "react";
import styles from "./ChartCard.module.css";
import { Card } from "./Page";

/** Charts beside each other, or below each other on a phone. */
export function ChartGrid({ children }: { children: ReactNode }) {
  return <div className={styles.grid}>{children}</div>;
}

/** A chart with its title, while its code is loaded too. */
export function ChartCard(props: { label: string; beside?: ReactNode; children: ReactNode }) {
  return (
    <Card className={styles.card}>
      <div className={styles.head}>
        <h2>{props.label}</h2>
        {props.beside && <span className={styles.beside}>{props.beside}</span>}
      </div>
      <Suspense
        fallback={<div className={styles.place} role="status" aria-label="Loading the chart" />}
      >
        {props.children}
      </Suspense>
    </Card>
  );
}
