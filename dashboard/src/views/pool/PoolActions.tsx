import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { answer, api, type Schemas } from "../../api/client";
import { useMay } from "../../api/who";
import { Button } from "../../ui/Button";
import { ConfirmDialog } from "../../ui/Dialog";
import { notify } from "../../ui/Notices";
import { settingsOf } from "../pools/settings";

/** Enable, disable and delete, for those who may manage pools. */
export function PoolActions({ pool }: { pool: Schemas["PoolInfo"] }) {
  const allowed = useMay("manage-pools");
  const client = useQueryClient();
  const navigate = useNavigate();
  const [asking, setAsking] = useState<"switch" | "delete">();
  if (!allowed || pool.state === "deleting") return null;
  const { enabled } = settingsOf(pool);
  const params = { path: { name: pool.name } };
  async function toggle(): Promise<void> {
    const changed: unknown = { ...pool.description, enabled: !enabled };
    const body = changed as Record<string, never>;
    await answer(api.PUT("/api/v1/pools/{name}", { params, body }));
    notify(`Pool ${pool.name} is ${enabled ? "disabled" : "enabled"}`);
    await client.invalidateQueries({ queryKey: ["pools"] });
  }
  async function remove(): Promise<void> {
    await answer(api.DELETE("/api/v1/pools/{name}", { params }));
    notify(`Pool ${pool.name} is deleted when its workers are gone`);
    await client.invalidateQueries({ queryKey: ["pools"] });
    void navigate({ to: "/pools" });
  }
  return (
    <>
      <Button onClick={() => setAsking("switch")}>{enabled ? "Disable" : "Enable"}</Button>
      <Button kind="danger" onClick={() => setAsking("delete")}>
        Delete
      </Button>
      {asking === "switch" && (
        <ConfirmDialog
          title={`${enabled ? "Disable" : "Enable"} ${pool.name}?`}
          confirm={enabled ? "Disable" : "Enable"}
          onConfirm={toggle}
          onClose={() => setAsking(undefined)}
        >
          <p>
            {enabled
              ? "It starts no more machines; those it has leave when they are idle."
              : "It starts machines again as jobs need them."}
          </p>
        </ConfirmDialog>
      )}
      {asking === "delete" && (
        <ConfirmDialog
          title={`Delete ${pool.name}?`}
          confirm="Delete"
          danger
          onConfirm={remove}
          onClose={() => setAsking(undefined)}
        >
          <p>Its machines are drained and ended; then the pool is gone. Its costs stay.</p>
        </ConfirmDialog>
      )}
    </>
  );
}
