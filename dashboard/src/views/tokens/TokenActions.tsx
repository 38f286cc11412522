import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api, type Schemas } from "../../api/client";
import { Button } from "../../ui/Button";
import { ConfirmDialog } from "../../ui/Dialog";
import { TextField } from "../../ui/Field";
import { notify } from "../../ui/Notices";
import { Secret } from "./Secret";

/** Rotate and revoke. */
export function TokenActions({ token }: { token: Schemas["TokenInfo"] }) {
  const client = useQueryClient();
  const [asking, setAsking] = useState<"rotate" | "revoke">();
  const [grace, setGrace] = useState("0");
  const [secret, setSecret] = useState<string>();
  const params = { path: { token: token.id } };
  const refresh = () => client.invalidateQueries({ queryKey: ["tokens"] });
  async function revoke(): Promise<void> {
    await answer(api.DELETE("/api/v1/tokens/{token}", { params }));
    notify(`Token ${token.name} is revoked`);
    await refresh();
  }
  async function rotate(): Promise<void> {
    const body = { grace };
    const made = await answer(api.POST("/api/v1/tokens/{token}/rotate", { params, body }));
    setSecret(made.token);
    await refresh();
  }
  const canRotate = token.kind === "token" && token.role !== "worker";
  return (
    <>
      {canRotate && (
        <Button small aria-label={`Rotate ${token.name}`} onClick={() => setAsking("rotate")}>
          Rotate
        </Button>
      )}
      <Button
        small
        kind="danger"
        aria-label={`Revoke ${token.name}`}
        onClick={() => setAsking("revoke")}
      >
        Revoke
      </Button>
      {asking === "revoke" && (
        <ConfirmDialog
          title={`Revoke ${token.name}?`}
          confirm="Revoke"
          danger
          onConfirm={revoke}
          onClose={() => setAsking(undefined)}
        >
          <p>Whoever uses it is refused from now on.</p>
        </ConfirmDialog>
      )}
      {asking === "rotate" && (
        <ConfirmDialog
          title={`Rotate ${token.name}?`}
          confirm="Make a new secret"
          onConfirm={rotate}
          onClose={() => setAsking(undefined)}
        >
          <p>A new token takes its place, with the same rights.</p>
          <TextField
            label="The old one stays valid for"
            hint="Such as 10m; 0: it ends at once."
            value={grace}
            onChange={(event) => setGrace(event.target.value)}
          />
        </ConfirmDialog>
      )}
      {secret && <Secret token={secret} name={token.name} onClose={() => setSecret(undefined)} />}
    </>
  );
}
