import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api } from "../../api/client";
import { useMay } from "../../api/who";
import { Button } from "../../ui/Button";
import { count, counted } from "../../ui/format";
import { JobLink } from "../../ui/links";
import { notify, notifyError } from "../../ui/Notices";
import styles from "./Progress.module.css";
import type { Progress, Workflow } from "./queries";

const FEW = 5; // before the graph, which should stay in sight

/** Jobs that somebody has to let through. */
export function Approvals({ workflow, progress }: { workflow: Workflow; progress: Progress }) {
  const may = useMay("unblock-jobs", workflow.namespace);
  const client = useQueryClient();
  const [busy, setBusy] = useState<number>();
  const [all, setAll] = useState(false);
  const shown = all ? progress.approvals : progress.approvals.slice(0, FEW);
  async function decide(job: number, name: string, reject: boolean): Promise<void> {
    setBusy(job);
    try {
      await answer(
        api.POST("/api/v1/jobs/{job}/unblock", {
          params: { path: { job } },
          body: { accept: !reject },
        }),
      );
      notify(`${reject ? "Rejected" : "Approved"} ${name}`);
      await client.invalidateQueries({ queryKey: ["workflow", workflow.id] });
    } catch (problem) {
      notifyError(problem);
    } finally {
      setBusy(undefined);
    }
  }
  return (
    <section className={styles.approvals} aria-label="Waiting for approval">
      <h2>Waiting for approval</h2>
      <ul>
        {shown.map((one) => (
          <li key={one.job} className={styles.approval}>
            <JobLink id={one.job}>{one.name}</JobLink>
            {one.others > 0 && <span>also waits for {counted(one.others, "job")}</span>}
            {may && (
              <span className={styles.buttons}>
                <Button
                  small
                  kind="primary"
                  busy={busy === one.job}
                  onClick={() => void decide(one.job, one.name, false)}
                >
                  Approve
                </Button>
                <Button
                  small
                  busy={busy === one.job}
                  onClick={() => void decide(one.job, one.name, true)}
                >
                  Reject
                </Button>
              </span>
            )}
          </li>
        ))}
      </ul>
      {progress.approvals.length > FEW && (
        <Button kind="quiet" small aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? "Show fewer" : `Show all ${count(progress.approvals.length)}`}
        </Button>
      )}
      {progress.approvals_left_out > 0 && (
        <p>and {counted(progress.approvals_left_out, "more job", "more jobs")}</p>
      )}
    </section>
  );
}
