import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api } from "../../api/client";
import { Button } from "../../ui/Button";
import { Dialog } from "../../ui/Dialog";
import { ErrorBox } from "../../ui/ErrorBox";
import { SelectField, TextField } from "../../ui/Field";
import { Secret } from "./Secret";
import styles from "./Tokens.module.css";

const ROLES = ["viewer", "submitter", "operator", "admin"] as const;

/** Creates a token, whose secret is shown only here. */
export function CreateDialog({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [role, setRole] = useState<string>("viewer");
  const [namespaces, setNamespaces] = useState("");
  const [expires, setExpires] = useState("");
  const made = useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/v1/tokens", {
          body: { name, role, namespaces: words(namespaces), expires: expires || null },
        }),
      ),
    onSuccess: () => client.invalidateQueries({ queryKey: ["tokens"] }),
  });
  if (made.data) {
    return <Secret token={made.data.token} name={made.data.info.name} onClose={onClose} />;
  }
  const actions = (
    <>
      <Button onClick={onClose}>Back</Button>
      <Button kind="primary" busy={made.isPending} disabled={!name} onClick={() => made.mutate()}>
        Create
      </Button>
    </>
  );
  return (
    <Dialog title="Create a token" onClose={onClose} actions={actions}>
      <div className={styles.stack}>
        {made.error && <ErrorBox error={made.error} />}
        <TextField
          label="Name"
          hint="Who or what uses it; shown wherever it did something."
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
        <SelectField label="Role" value={role} onChange={(event) => setRole(event.target.value)}>
          {ROLES.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </SelectField>
        <TextField
          label="Namespaces"
          hint="Separated by commas. Empty: all of them."
          value={namespaces}
          onChange={(event) => setNamespaces(event.target.value)}
        />
        <TextField
          label="Ends after"
          hint="Such as 30d. Empty: as the server is set."
          value={expires}
          onChange={(event) => setExpires(event.target.value)}
        />
      </div>
    </Dialog>
  );
}

function words(text: string): string[] {
  return text
    .split(",")
    .map((word) => word.trim())
    .filter(Boolean);
}
