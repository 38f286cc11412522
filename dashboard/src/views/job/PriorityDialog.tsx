import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api, type Schemas } from "../../api/client";
import { ConfirmDialog } from "../../ui/Dialog";
import { TextField } from "../../ui/Field";
import { notify } from "../../ui/Notices";

/** Raises or lowers the priority of a job that has not ended. */
export function PriorityDialog({ job, onClose }: { job: Schemas["Job"]; onClose: () => void }) {
  const client = useQueryClient();
  const [text, setText] = useState(String(job.priority.adjustment));
  const value = Number(text);
  const problem = Number.isInteger(value) ? undefined : "A whole number";
  return (
    <ConfirmDialog
      title={`Priority of job ${job.id}`}
      confirm="Change priority"
      onClose={onClose}
      onConfirm={async () => {
        const params = { path: { job: job.id } };
        const body = { adjustment: value };
        await answer(api.POST("/api/v1/jobs/{job}/priority", { params, body }));
        notify("Changed the priority");
        await client.invalidateQueries({ queryKey: ["job", job.id] });
      }}
    >
      <TextField
        label="Added to its priority"
        type="number"
        value={text}
        problem={problem}
        hint={`It was submitted with ${job.priority.base}, and counts as ${job.priority.effective} now. More means sooner.`}
        onChange={(event) => setText(event.target.value)}
      />
    </ConfirmDialog>
  );
}
