import { Link } from "@tanstack/react-router";
import type { Schemas } from "../../api/client";
import { StateBadge } from "../../ui/StateBadge";
import { lookOf } from "../../ui/states";
import styles from "./Workers.module.css";

/** Workers as tiles: state, name, and how many of its slots are taken. */
export function WorkerTiles({ workers }: { workers: readonly Schemas["FleetWorker"][] }) {
  return (
    <ul className={styles.tiles} aria-label="Workers">
      {workers.map((worker) => (
        <li key={worker.id}>
          <Link
            to="/workers/$worker"
            params={{ worker: worker.name }}
            className={styles.tile}
            data-tone={lookOf(worker.status).tone}
            title={worker.reason ? `${worker.name}: ${worker.reason}` : worker.name}
          >
            <span className={styles.name}>{worker.name}</span>
            <StateBadge state={worker.status} plain />
            <span className={styles.slots}>
              {worker.held} of {worker.slots} {worker.slots === 1 ? "slot" : "slots"}
            </span>
            <span className={styles.meter} aria-hidden="true">
              <span style={{ width: `${fill(worker.held, worker.slots)}%` }} />
            </span>
          </Link>
        </li>
      ))}
    </ul>
  );
}

function fill(held: number, slots: number): number {
  return slots > 0 ? Math.min(100, (held / slots) * 100) : 0;
}
