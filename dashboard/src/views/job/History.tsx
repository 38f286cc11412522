import { Link } from "@tanstack/react-router";
import type { Schemas } from "../../api/client";
import { clock, day, exact } from "../../ui/format";
import { WorkerLink } from "../../ui/links";
import { StateBadge } from "../../ui/StateBadge";
import { Told } from "../../ui/Told";
import styles from "./Job.module.css";

/** Every change of a job's state, with who made it. */
export function History({ job }: { job: Schemas["Job"] }) {
  return (
    <div className={styles.scroll}>
      <table className={styles.table}>
        <caption className="visually-hidden">Changes of its state</caption>
        <thead>
          <tr>
            <th scope="col">At</th>
            <th scope="col">State</th>
            <th scope="col">Attempt</th>
            <th scope="col">Worker</th>
            <th scope="col">Reason</th>
            <th scope="col">By</th>
          </tr>
        </thead>
        <tbody>
          {job.transitions.map((move) => (
            <tr key={move.seq}>
              <td className={styles.nowrap} title={exact(Date.parse(move.at))}>
                {day(Date.parse(move.at))} {clock(Date.parse(move.at))}
              </td>
              <td>
                <StateBadge state={move.to} plain />
              </td>
              <td>
                {move.attempt > 0 && (
                  <Link
                    to="/jobs/$job"
                    params={{ job: String(job.id) }}
                    search={{ tab: "log", attempt: move.attempt }}
                    aria-label={`Log of attempt ${move.attempt}`}
                  >
                    {move.attempt}
                  </Link>
                )}
              </td>
              <td>{move.worker && <WorkerLink name={move.worker} />}</td>
              <td>{move.reason && <Told text={move.reason} />}</td>
              <td className={styles.nowrap}>{move.actor}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
