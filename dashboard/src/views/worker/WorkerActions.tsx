import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { answer, api, type Schemas } from "../../api/client";
import { useMay } from "../../api/who";
import { Button } from "../../ui/Button";
import { ConfirmDialog } from "../../ui/Dialog";
import { Checkbox } from "../../ui/Field";
import { counted } from "../../ui/format";
import { Menu, type MenuItem } from "../../ui/Menu";
import { notify, notifyError } from "../../ui/Notices";

type Worker = Schemas["WorkerInfo"];
type Action = "drain" | "enable" | "disable" | "approve";
const DONE: Record<Action, string> = {
  drain: "is draining: it takes no more jobs",
  enable: "takes jobs again",
  disable: "is disabled",
  approve: "is approved",
};

/** Drain, disable, enable, approve and remove, as far as they make sense now. */
export function WorkerActions({ worker }: { worker: Worker }) {
  const allowed = useMay("manage-workers");
  const client = useQueryClient();
  const navigate = useNavigate();
  const [asking, setAsking] = useState<"disable" | "remove">();
  const [force, setForce] = useState(false);
  async function act(action: Action): Promise<void> {
    const path = { worker: worker.id, action };
    await answer(api.POST("/api/v1/workers/{worker}/{action}", { params: { path } }));
    notify(`Worker ${worker.name} ${DONE[action]}`);
    await client.invalidateQueries({ queryKey: ["worker", worker.name] });
  }
  const acting = useMutation({ mutationFn: act, onError: notifyError });
  async function remove(): Promise<void> {
    const params = { path: { worker: worker.id }, query: { force } };
    await answer(api.DELETE("/api/v1/workers/{worker}", { params }));
    notify(`Worker ${worker.name} is removed`);
    void navigate({ to: "/workers" });
  }
  if (!allowed) return null;
  const status = worker.status;
  const isOff = status === "disabled" || status === "draining";
  const items: MenuItem[] = [];
  if (status !== "disabled" && status !== "pending_approval") {
    items.push({ label: "Disable", onSelect: () => setAsking("disable"), danger: true });
  }
  items.push({ label: "Remove", onSelect: () => setAsking("remove"), danger: true });
  return (
    <>
      {status === "pending_approval" && (
        <Button kind="primary" busy={acting.isPending} onClick={() => acting.mutate("approve")}>
          Approve
        </Button>
      )}
      {isOff && (
        <Button kind="primary" busy={acting.isPending} onClick={() => acting.mutate("enable")}>
          Enable
        </Button>
      )}
      {status === "probation" && (
        <Button kind="primary" busy={acting.isPending} onClick={() => acting.mutate("enable")}>
          End probation
        </Button>
      )}
      {!isOff && status !== "pending_approval" && (
        <Button busy={acting.isPending} onClick={() => acting.mutate("drain")}>
          Drain
        </Button>
      )}
      <Menu label="More actions" icon="more" iconOnly items={items} />
      {asking === "disable" && (
        <ConfirmDialog
          title={`Disable ${worker.name}?`}
          confirm="Disable"
          danger
          onConfirm={() => act("disable")}
          onClose={() => setAsking(undefined)}
        >
          <p>
            It gets no more jobs and may not speak to the server.{" "}
            {worker.held > 0 && `Its ${counted(worker.held, "job")} will run elsewhere.`}
          </p>
        </ConfirmDialog>
      )}
      {asking === "remove" && (
        <ConfirmDialog
          title={`Remove ${worker.name}?`}
          confirm="Remove"
          danger
          onConfirm={remove}
          onClose={() => setAsking(undefined)}
        >
          <p>Its tokens end. It has to enrol again to come back; its history stays.</p>
          {worker.held > 0 && (
            <Checkbox
              label={`Although it holds ${counted(worker.held, "job")}`}
              checked={force}
              onChange={(event) => setForce(event.target.checked)}
            />
          )}
        </ConfirmDialog>
      )}
    </>
  );
}
