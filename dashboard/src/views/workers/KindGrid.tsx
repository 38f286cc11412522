import { Link } from "@tanstack/react-router";
import { count } from "../../ui/format";
import { StateBadge } from "../../ui/StateBadge";
import type { WorkersSearch } from "./route";
import styles from "./Workers.module.css";

const STATES = [
  "busy",
  "idle",
  "draining",
  "unhealthy",
  "probation",
  "offline",
  "disabled",
  "pending_approval",
] as const;

interface Props {
  kinds: Record<string, Record<string, number>>;
  search: WorkersSearch;
}

/** How many workers there are of each kind in each state; every number shows these workers. */
export function KindGrid({ kinds, search }: Props) {
  const rows = Object.entries(kinds);
  const states = STATES.filter((state) => rows.some(([, counts]) => counts[state]));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it.
    <div className={styles.scroll} tabIndex={0}>
      <table className={styles.grid}>
        <caption className="visually-hidden">Workers by kind and state</caption>
        <thead>
          <tr>
            <th scope="col">Kind</th>
            {states.map((state) => (
              <th scope="col" key={state}>
                <StateBadge state={state} plain />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(([kind, counts]) => (
            <tr key={kind}>
              <th scope="row">
                <Link to="/workers" search={{ ...search, kind, state: undefined }}>
                  {kind}
                </Link>
              </th>
              {states.map((state) => {
                const value = counts[state] ?? 0;
                return (
                  <td key={state}>
                    {value > 0 ? (
                      <Link
                        to="/workers"
                        search={{ ...search, kind, state: [state] }}
                        aria-label={`${count(value)} ${state.replaceAll("_", " ")} of ${kind}`}
                      >
                        {count(value)}
                      </Link>
                    ) : (
                      <span className={styles.none}>0</span>
                    )}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
