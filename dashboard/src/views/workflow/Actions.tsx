import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { answer, api } from "../../api/client";
import { mayChange, useWho } from "../../api/who";
import { Button } from "../../ui/Button";
import { ConfirmDialog } from "../../ui/Dialog";
import { counted } from "../../ui/format";
import { notify } from "../../ui/Notices";
import { hasEnded } from "../workflows/states";
import type { Workflow } from "./queries";

type Asked = "cancel" | "failed" | "all";

const BAD = ["failed", "aborted", "canceled", "rejected"] as const;

/** Cancel, retry what failed, or start all of it again. */
export function Actions({ workflow }: { workflow: Workflow }) {
  const [asked, setAsked] = useState<Asked>();
  const client = useQueryClient();
  const navigate = useNavigate();
  const who = useWho().data;
  if (!who || !mayChange(who, workflow.submitted_by, workflow.namespace)) return null;
  const ended = hasEnded(workflow.state);
  const bad = BAD.reduce((sum, state) => sum + (workflow.counts[state] ?? 0), 0);
  const open = Object.entries(workflow.counts)
    .filter(([state]) => state !== "completed" && !BAD.some((one) => one === state))
    .reduce((sum, [, jobs]) => sum + jobs, 0);
  const path = { params: { path: { workflow: workflow.id } } };
  const refresh = () => client.invalidateQueries({ queryKey: ["workflow", workflow.id] });

  async function cancel(): Promise<void> {
    await answer(
      api.POST("/api/v1/workflows/{workflow}/cancel", { ...path, body: { reason: "Canceled" } }),
    );
    notify(`Canceled ${workflow.name}`);
    await refresh();
  }
  async function retry(failed: boolean): Promise<void> {
    const done = await answer(
      api.POST("/api/v1/workflows/{workflow}/retry", { ...path, body: { failed } }),
    );
    notify(failed ? `Retried ${counted(bad, "job")}` : `Started workflow ${done.id}`);
    await refresh();
    if (done.id !== workflow.id) {
      await navigate({ to: "/workflows/$workflow", params: { workflow: String(done.id) } });
    }
  }
  return (
    <>
      {bad > 0 && ended && (
        <Button kind="primary" icon="refresh" onClick={() => setAsked("failed")}>
          Retry failed
        </Button>
      )}
      {ended && (
        <Button icon="refresh" onClick={() => setAsked("all")}>
          Run again
        </Button>
      )}
      {!ended && (
        <Button kind="danger" icon="close" onClick={() => setAsked("cancel")}>
          Cancel
        </Button>
      )}
      {asked === "cancel" && (
        <ConfirmDialog
          title={`Cancel ${workflow.name}?`}
          confirm={`Cancel ${counted(open, "job")}`}
          danger
          onConfirm={cancel}
          onClose={() => setAsked(undefined)}
        >
          Nothing new starts, and running jobs are told to stop. Finished jobs keep their results.
        </ConfirmDialog>
      )}
      {asked === "failed" && (
        <ConfirmDialog
          title="Retry what did not complete?"
          confirm={`Retry ${counted(bad, "job")}`}
          onConfirm={() => retry(true)}
          onClose={() => setAsked(undefined)}
        >
          New jobs take the place of those that failed, were aborted or canceled. Completed jobs
          stay as they are.
        </ConfirmDialog>
      )}
      {asked === "all" && (
        <ConfirmDialog
          title="Run all of it again?"
          confirm={`Start ${counted(workflow.jobs, "job")}`}
          onConfirm={() => retry(false)}
          onClose={() => setAsked(undefined)}
        >
          A new workflow with the same jobs starts from the beginning; this one stays as it is.
        </ConfirmDialog>
      )}
    </>
  );
}
