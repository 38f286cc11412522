import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api, type Schemas } from "../../api/client";
import { Button } from "../../ui/Button";
import { Dialog } from "../../ui/Dialog";
import { ErrorBox } from "../../ui/ErrorBox";
import { Checkbox, SelectField, TextField } from "../../ui/Field";
import { notify } from "../../ui/Notices";
import { timeoutOf } from "./figures";
import styles from "./Queues.module.css";

const MODES = ["process", "user", "sandbox", "container"] as const;

/** How many jobs of a queue may run, in all and on each worker, how, and for how long. */
export function LimitsDialog(props: { queue: Schemas["QueueInfo"]; onClose: () => void }) {
  const { queue, onClose } = props;
  const client = useQueryClient();
  const [total, setTotal] = useState(String(queue.max_running ?? 0));
  const [each, setEach] = useState(String(queue.max_per_worker ?? 0));
  const [preempts, setPreempts] = useState(queue.preempts ?? false);
  const [isolation, setIsolation] = useState(queue.isolation ?? "process");
  const [timeout, setTimeout] = useState(timeoutOf(queue) ?? "default");
  const changing = useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/v1/queues/{name}/limits", {
          params: { path: { name: queue.name } },
          body: {
            max_running: Number(total),
            max_per_worker: Number(each),
            preempts,
            isolation,
            timeout,
          },
        }),
      ),
    onSuccess: async () => {
      notify(`Queue ${queue.name} has new limits`);
      await client.invalidateQueries({ queryKey: ["queues"] });
      onClose();
    },
  });
  const actions = (
    <>
      <Button onClick={onClose}>Back</Button>
      <Button kind="primary" busy={changing.isPending} onClick={() => changing.mutate()}>
        Set the limits
      </Button>
    </>
  );
  return (
    <Dialog title={`Limits of ${queue.name}`} onClose={onClose} actions={actions}>
      <div className={styles.stack}>
        {changing.error && <ErrorBox error={changing.error} />}
        <TextField
          label="Jobs that run at once"
          hint="0: any number"
          type="number"
          min={0}
          value={total}
          onChange={(event) => setTotal(event.target.value)}
        />
        <TextField
          label="Jobs on each worker"
          hint="0: any number"
          type="number"
          min={0}
          value={each}
          onChange={(event) => setEach(event.target.value)}
        />
        <SelectField
          label="Isolation, at least"
          value={isolation}
          onChange={(event) => setIsolation(event.target.value)}
        >
          {MODES.map((mode) => (
            <option key={mode} value={mode}>
              {mode}
            </option>
          ))}
        </SelectField>
        <TextField
          label="Timeout of jobs without their own"
          hint="Such as 6h; none, or default for the server's. For jobs submitted from now on"
          value={timeout}
          onChange={(event) => setTimeout(event.target.value)}
        />
        <Checkbox
          label="Its jobs may take the place of preemptible ones"
          checked={preempts}
          onChange={(event) => setPreempts(event.target.checked)}
        />
        <p className={styles.soft}>
          Rates (so many starts in a time) belong to jobs: their option is --rate. The list of
          queues shows those under which jobs wait.
        </p>
      </div>
    </Dialog>
  );
}
