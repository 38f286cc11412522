import type { Schemas } from "../../api/client";
import { counted } from "../../ui/format";
import { Icon } from "../../ui/Icon";
import { WorkerLink } from "../../ui/links";
import styles from "./Matrix.module.css";

type Row = Schemas["MatrixRow"];
type Cell = Schemas["Cell"];

/** Workers as rows, what a job asks of them as columns: met or not, with what each has. */
export function Matrix({ matrix }: { matrix: Schemas["Matrix"] }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table scrolls by keyboard.
    <section className={styles.scroll} tabIndex={0} aria-label="Workers and clauses">
      <table className={styles.table}>
        <caption className="visually-hidden">Which workers have what it asks for</caption>
        <thead>
          <tr>
            <th scope="col">Worker</th>
            {matrix.columns.map((column) => (
              <th key={column.clause} scope="col" title={column.clause}>
                {column.needs}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {matrix.rows.map((row) => (
            <tr key={row.worker ?? row.group} data-runnable={row.runnable || undefined}>
              <th scope="row">
                <Who row={row} />
              </th>
              {row.cells.map((cell, place) => (
                <td key={matrix.columns[place]?.clause ?? place} data-met={String(cell.met)}>
                  <Mark cell={cell} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {matrix.more > 0 && <p className={styles.more}>and {counted(matrix.more, "more worker")}</p>}
    </section>
  );
}

function Who({ row }: { row: Row }) {
  return (
    <span className={styles.who}>
      {row.worker !== null ? (
        <WorkerLink name={row.worker} />
      ) : (
        `${counted(row.count, "worker")} (${row.group})`
      )}
    </span>
  );
}

function Mark({ cell }: { cell: Cell }) {
  if (cell.met === null) return <span className={styles.unknown}>not looked at</span>;
  return (
    <span className={styles.cell}>
      <Icon name={cell.met ? "check" : "close"} size={14} />
      <span className="visually-hidden">{cell.met ? "met" : "not met"}</span>
      {cell.has ?? ""}
    </span>
  );
}
