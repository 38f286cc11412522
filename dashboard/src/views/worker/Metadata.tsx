import { useState } from "react";
import type { Schemas } from "../../api/client";
import { Empty } from "../../ui/Empty";
import { TextField } from "../../ui/Field";
import { bytes } from "../../ui/format";
import { workerRoute } from "./route";
import styles from "./Worker.module.css";

const LONG = 200;

/** What the worker reports beside what operators have set; the latter counts where both are. */
export function Metadata({ worker }: { worker: Schemas["WorkerInfo"] }) {
  const { find = "" } = workerRoute.useSearch();
  const navigate = workerRoute.useNavigate();
  const keys = [...new Set([...Object.keys(worker.dynamic), ...Object.keys(worker.static)])]
    .filter((key) => key.toLowerCase().includes(find.toLowerCase()))
    .sort();
  return (
    <>
      <TextField
        label="Find in the metadata"
        hideLabel
        placeholder="Part of a name, such as gpu"
        className={styles.find}
        value={find}
        onChange={(event) =>
          void navigate({
            search: (before) => ({ ...before, find: event.target.value || undefined }),
            replace: true,
          })
        }
      />
      {keys.length === 0 ? (
        <Empty title="Nothing of that name" />
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it.
        <div className={styles.scroll} tabIndex={0}>
          <table className={styles.table}>
            <caption className="visually-hidden">Metadata of {worker.name}</caption>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Reported by the worker</th>
                <th scope="col">Set by operators</th>
              </tr>
            </thead>
            <tbody>
              {keys.map((key) => (
                <tr
                  key={key}
                  data-overridden={(key in worker.static && key in worker.dynamic) || undefined}
                >
                  <th scope="row">{key}</th>
                  <td>
                    <Value name={key} value={worker.dynamic[key]} />
                  </td>
                  <td>
                    <Value name={key} value={worker.static[key]} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

function Value({ name, value }: { name: string; value: unknown }) {
  const [open, setOpen] = useState(false);
  if (value === undefined) return <span className={styles.soft}>–</span>;
  const text = written(name, value);
  if (text.length <= LONG || open) return <code>{text}</code>;
  return (
    <>
      <code>{text.slice(0, LONG)}…</code>{" "}
      <button type="button" className={styles.more} onClick={() => setOpen(true)}>
        all of it
      </button>
    </>
  );
}

function written(name: string, value: unknown): string {
  if (typeof value === "number" && /memory|disk/.test(name)) return bytes(value);
  if (typeof value === "string") return value;
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) {
    return value.join(", ");
  }
  return JSON.stringify(value);
}
