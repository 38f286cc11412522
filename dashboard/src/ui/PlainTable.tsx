import type { ReactNode } from "react";
import styles from "./PlainTable.module.css";

export interface PlainRow {
  key: string;
  cells: readonly ReactNode[];
}

interface Props {
  /** What the table lists, for screen readers. */
  label: string;
  head: readonly ReactNode[];
  rows: readonly PlainRow[];
  /** Columns of numbers, which stand on the right. */
  numbers?: readonly number[];
}

/** A long text in a cell: it wraps. */
export function Wrapped({ children }: { children: ReactNode }) {
  return <span className={styles.wrapped}>{children}</span>;
}

/** A short table; the first cell of each row names it. Long ones are `DataTable`s. */
export function PlainTable({ label, head, rows, numbers = [] }: Props) {
  const align = (at: number) => (numbers.includes(at) ? "right" : undefined);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it.
    <div className={styles.scroll} tabIndex={0}>
      <table className={styles.table}>
        <caption className="visually-hidden">{label}</caption>
        <thead>
          <tr>
            {head.map((cell, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: columns are where they are.
              <th key={at} scope="col" data-align={align(at)}>
                {cell || <span className="visually-hidden">Actions</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.key}>
              {row.cells.map((cell, at) =>
                at === 0 ? (
                  // biome-ignore lint/suspicious/noArrayIndexKey: columns are where they are.
                  <th key={at} scope="row" data-align={align(at)}>
                    {cell}
                  </th>
                ) : (
                  // biome-ignore lint/suspicious/noArrayIndexKey: columns are where they are.
                  <td key={at} data-align={align(at)}>
                    {cell}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
