import type { Schemas } from "../../api/client";
import { StateBadge } from "../../ui/StateBadge";
import { Time } from "../../ui/Time";
import styles from "./Job.module.css";

/** What a durable function has stored, and what it waits for. */
export function Steps({ steps }: { steps: Schemas["StepInfo"][] }) {
  return (
    <div className={styles.scroll}>
      <table className={styles.table}>
        <thead>
          <tr>
            <th scope="col">Step</th>
            <th scope="col">Kind</th>
            <th scope="col">State</th>
            <th scope="col">Attempt</th>
            <th scope="col">Began</th>
            <th scope="col">Ended</th>
            <th scope="col">About</th>
          </tr>
        </thead>
        <tbody>
          {steps.map((step) => (
            <tr key={step.key}>
              <td>{step.key}</td>
              <td>{step.kind}</td>
              <td>
                <StateBadge
                  state={step.state === "pending" ? "waiting" : "completed"}
                  plain
                  label={step.state}
                />
              </td>
              <td>{step.attempt}</td>
              <td>
                <Time at={step.asked_at} />
              </td>
              <td>
                <Time at={step.ended_at} />
              </td>
              <td>{aboutOf(step)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function aboutOf(step: Schemas["StepInfo"]): string {
  const about = step.question ?? (step.name ? `signal ${step.name}` : "");
  return step.actor ? `${about} (by ${step.actor})` : about;
}
