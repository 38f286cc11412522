import { useState } from "react";
import { answer, type Schemas } from "../../api/client";
import { useMay } from "../../api/who";
import { API_BASE } from "../../base";
import { Button } from "../../ui/Button";
import { CodeBlock } from "../../ui/CodeBlock";
import { notify, notifyError } from "../../ui/Notices";
import { Told } from "../../ui/Told";
import styles from "./Job.module.css";

type Step = Schemas["Step"];
type Request = NonNullable<Step["request"]>;

/** One thing to do so that a job can run: a button where one call does it. */
export function ChangeStep({ step, onDone }: { step: Step; onDone: () => Promise<unknown> }) {
  const [busy, setBusy] = useState(false);
  const request = step.request;
  const may = useMay(request?.needs ?? "", request?.namespace);
  async function act(what: Request): Promise<void> {
    setBusy(true);
    try {
      await send(what);
      notify(`Done: ${step.text}`);
      await onDone();
    } catch (problem) {
      notifyError(problem);
    }
    setBusy(false);
  }
  return (
    <li className={styles.step}>
      <span>
        <Told text={step.text} />
      </span>
      {request && may && (
        <Button kind="primary" small busy={busy} onClick={() => void act(request)}>
          {wordsFor(step)}
        </Button>
      )}
      {step.command && <CodeBlock text={step.command} label="Copy the command" />}
    </li>
  );
}

const WORDS: Partial<Record<Step["action"], string>> = {
  resume_queue: "Resume the queue",
  raise_queue_limit: "Raise the limit",
  unblock: "Accept it",
  enable_worker: "Enable the worker",
  approve_worker: "Approve the worker",
  set_metadata: "Change the worker",
};

function wordsFor(step: Step): string {
  return WORDS[step.action] ?? "Do it";
}

/** Makes the call that the server proposed; its path is not known before. */
async function send(request: Request): Promise<void> {
  const call = fetch(`${API_BASE}${request.path}`, {
    method: request.method,
    credentials: "same-origin",
    headers: { "Content-Type": "application/json" },
    body: request.body === null ? undefined : JSON.stringify(request.body),
  });
  await answer(
    call.then(async (response) => ({
      response,
      error: response.ok ? undefined : await response.json().catch(() => undefined),
    })),
  );
}
