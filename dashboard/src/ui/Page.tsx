import { type ReactNode, useEffect } from "react";
import styles from "./Page.module.css";

interface Props {
  /** The heading, and the title of the browser's tab. */
  title: string;
  /** Shown instead of the plain title. */
  heading?: ReactNode;
  /** Small facts under the heading. */
  facts?: ReactNode;
  actions?: ReactNode;
  /** Fills the height of the window, for tables that scroll by themselves. */
  full?: boolean;
  children: ReactNode;
}

/** A view: its heading, its actions, and what it shows. */
export function Page({ title, heading, facts, actions, full = false, children }: Props) {
  useEffect(() => {
    document.title = `${title} · Windlass`;
  }, [title]);
  return (
    <div className={`${styles.page} ${full ? styles.full : ""}`}>
      <header className={styles.head}>
        <div className={styles.headings}>
          <h1>{heading ?? title}</h1>
          {facts && <div className={styles.facts}>{facts}</div>}
        </div>
        {actions && <div className={styles.actions}>{actions}</div>}
      </header>
      {children}
    </div>
  );
}

/** A part of a view with a heading of its own. */
export function Section(props: { title: string; actions?: ReactNode; children: ReactNode }) {
  return (
    <section className={styles.section}>
      <header className={styles.sectionHead}>
        <h2>{props.title}</h2>
        {props.actions}
      </header>
      {props.children}
    </section>
  );
}

/** A surface with a border. */
export function Card({ children, className = "" }: { children: ReactNode; className?: string }) {
  return <div className={`${styles.card} ${className}`}>{children}</div>;
}
