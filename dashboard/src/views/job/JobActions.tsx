import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { answer, api, type Schemas } from "../../api/client";
import { may, mayChange, useWho } from "../../api/who";
import { Button } from "../../ui/Button";
import { ConfirmDialog } from "../../ui/Dialog";
import { Menu, type MenuItem } from "../../ui/Menu";
import { notify, notifyError } from "../../ui/Notices";
import { isOpen } from "./job";
import { PriorityDialog } from "./PriorityDialog";
import { RetryDialog } from "./RetryDialog";

type Job = Schemas["Job"];
type Open = "cancel" | "delete" | "priority" | "retry" | "reject";

/** What the caller may do with a job now. */
export function JobActions({ job }: { job: Job }) {
  const who = useWho().data;
  const client = useQueryClient();
  const navigate = useNavigate();
  const [open, setOpen] = useState<Open>();
  const params = { path: { job: job.id } };
  const refresh = () => client.invalidateQueries({ queryKey: ["job", job.id] });
  if (!who) return null;
  const owns = mayChange(who, job.submitted_by, job.namespace);
  const ended = !isOpen(job);
  const mayRetry = owns && ended && job.state !== "completed" && !job.superseded_by;
  const waitsForOperator = job.state === "blocked" && job.unblock === "manual";

  async function retry(): Promise<void> {
    try {
      const done = await answer(api.POST("/api/v1/jobs/{job}/retry", { params }));
      notify(`Retried as job ${done.id}`);
      await navigate({ to: "/jobs/$job", params: { job: String(done.id) } });
    } catch (problem) {
      notifyError(problem);
    }
  }

  async function unblock(accept: boolean): Promise<void> {
    try {
      await answer(api.POST("/api/v1/jobs/{job}/unblock", { params, body: { accept } }));
      notify(accept ? "Accepted" : "Rejected");
      await refresh();
    } catch (problem) {
      notifyError(problem);
    }
  }

  const more: MenuItem[] = [];
  if (may(who, "submit-jobs", job.namespace)) {
    const like = { to: "/submit", search: { like: job.id } } as const;
    more.push({ label: "Submit one like it…", onSelect: () => void navigate(like) });
  }
  if (mayRetry) {
    more.push({ label: "Retry with changed arguments…", onSelect: () => setOpen("retry") });
  }
  if (owns && !ended) {
    more.push({ label: "Change priority…", onSelect: () => setOpen("priority") });
  }
  if (ended && may(who, "delete-jobs", job.namespace)) {
    more.push({ label: "Delete…", onSelect: () => setOpen("delete"), danger: true });
  }
  return (
    <>
      {waitsForOperator && may(who, "unblock-jobs", job.namespace) && (
        <>
          <Button kind="primary" onClick={() => void unblock(true)}>
            Accept
          </Button>
          <Button onClick={() => setOpen("reject")}>Reject</Button>
        </>
      )}
      {mayRetry && (
        <Button icon="refresh" onClick={() => void retry()}>
          Retry
        </Button>
      )}
      {owns && !ended && job.state !== "canceling" && (
        <Button kind="danger" onClick={() => setOpen("cancel")}>
          Cancel job
        </Button>
      )}
      {more.length > 0 && <Menu label="More actions" icon="more" iconOnly items={more} />}
      {open === "cancel" && (
        <ConfirmDialog
          title={`Cancel job ${job.id}?`}
          confirm="Cancel job"
          danger
          onClose={() => setOpen(undefined)}
          onConfirm={async () => {
            await answer(api.POST("/api/v1/jobs/{job}/cancel", { params }));
            notify(`Canceled job ${job.id}`);
            await refresh();
          }}
        >
          <p>Its program is told to stop. What waits for it is aborted.</p>
        </ConfirmDialog>
      )}
      {open === "reject" && (
        <ConfirmDialog
          title={`Reject job ${job.id}?`}
          confirm="Reject"
          danger
          onClose={() => setOpen(undefined)}
          onConfirm={() => unblock(false)}
        >
          <p>It will not run, and what waits for it is aborted.</p>
        </ConfirmDialog>
      )}
      {open === "delete" && (
        <ConfirmDialog
          title={`Delete job ${job.id}?`}
          confirm="Delete"
          danger
          onClose={() => setOpen(undefined)}
          onConfirm={async () => {
            await answer(api.DELETE("/api/v1/jobs/{job}", { params }));
            notify(`Deleted job ${job.id}`);
            await navigate({ to: "/jobs" });
          }}
        >
          <p>Its log, its artifacts and its history are removed for good.</p>
        </ConfirmDialog>
      )}
      {open === "priority" && <PriorityDialog job={job} onClose={() => setOpen(undefined)} />}
      {open === "retry" && <RetryDialog job={job} onClose={() => setOpen(undefined)} />}
    </>
  );
}
