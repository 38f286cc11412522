import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api } from "../../api/client";
import { API_BASE } from "../../base";
import { Button } from "../../ui/Button";
import { CodeBlock } from "../../ui/CodeBlock";
import { Dialog } from "../../ui/Dialog";
import { ErrorBox } from "../../ui/ErrorBox";
import { SelectField, TextField } from "../../ui/Field";
import { Time } from "../../ui/Time";
import styles from "./Workers.module.css";

const LIFETIMES = ["10m", "1h", "1d"] as const;

/** Makes a code with which one worker may enrol, and shows the command to paste there. */
export function EnrolDialog({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [expires, setExpires] = useState<string>("1h");
  const made = useMutation({
    mutationFn: () =>
      answer(api.POST("/api/v1/codes", { body: { expires, worker: name || null } })),
  });
  const actions = made.data ? (
    <Button kind="primary" onClick={onClose}>
      Done
    </Button>
  ) : (
    <Button kind="primary" busy={made.isPending} onClick={() => made.mutate()}>
      Make a code
    </Button>
  );
  return (
    <Dialog title="Enrol a worker" onClose={onClose} actions={actions} wide>
      {made.error && <ErrorBox error={made.error} />}
      {made.data ? (
        <div className={styles.stack}>
          <p>
            Run this on the machine of the worker. The code enrols one worker, once, and ends{" "}
            <Time at={made.data.expires_at} />. It is not shown again.
          </p>
          <CodeBlock text={commandFor(made.data.code, name)} label="Copy the command" />
          <p className={styles.soft}>
            A worker without a code waits for approval: it appears here as pending approval.
          </p>
        </div>
      ) : (
        <div className={styles.stack}>
          <TextField
            label="Name"
            hint="The only name the code is good for. Empty: the worker chooses."
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
          <SelectField
            label="The code is good for"
            value={expires}
            onChange={(event) => setExpires(event.target.value)}
          >
            {LIFETIMES.map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </SelectField>
        </div>
      )}
    </Dialog>
  );
}

function commandFor(code: string, name: string): string {
  const server = API_BASE || window.location.origin;
  const named = name ? ` --name '${name.replaceAll("'", "'\\''")}'` : "";
  return `windlass worker --server ${server}${named} --code ${code}`;
}
