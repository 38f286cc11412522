import { useNavigate } from "@tanstack/react-router";
import { useId, useState } from "react";
import { answer, api, type Schemas } from "../../api/client";
import { inWords } from "../../api/errors";
import { Button } from "../../ui/Button";
import { Dialog } from "../../ui/Dialog";
import { notify } from "../../ui/Notices";
import styles from "./Job.module.css";
import { pretty } from "./job";

/** Retries a job with other arguments. */
export function RetryDialog({ job, onClose }: { job: Schemas["Job"]; onClose: () => void }) {
  const navigate = useNavigate();
  const id = useId();
  const [text, setText] = useState(pretty(job.args));
  const [problem, setProblem] = useState<string>();
  const [busy, setBusy] = useState(false);
  async function retry(): Promise<void> {
    let args: unknown;
    try {
      args = JSON.parse(text);
    } catch (error) {
      setProblem(
        `This is not JSON: ${error instanceof Error ? error.message : "look at its end"}.`,
      );
      return;
    }
    setBusy(true);
    try {
      const params = { path: { job: job.id } };
      const done = await answer(
        api.POST("/api/v1/jobs/{job}/retry-with", { params, body: { args } }),
      );
      notify(`Retried as job ${done.id}`);
      onClose();
      await navigate({ to: "/jobs/$job", params: { job: String(done.id) } });
    } catch (error) {
      setProblem(inWords(error));
      setBusy(false);
    }
  }
  const actions = (
    <>
      <Button onClick={onClose}>Back</Button>
      <Button kind="primary" busy={busy} onClick={() => void retry()}>
        Retry
      </Button>
    </>
  );
  return (
    <Dialog
      title={`Retry job ${job.id} with changed arguments`}
      onClose={onClose}
      actions={actions}
      wide
    >
      <label htmlFor={id} className={styles.label}>
        Arguments, as JSON
      </label>
      <textarea
        id={id}
        className={styles.area}
        rows={14}
        spellCheck={false}
        value={text}
        aria-invalid={problem ? true : undefined}
        onChange={(event) => setText(event.target.value)}
      />
      {problem && (
        <p role="alert" className={styles.problem}>
          {problem}
        </p>
      )}
    </Dialog>
  );
}
