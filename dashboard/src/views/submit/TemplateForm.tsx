import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { answer, api, type Schemas } from "../../api/client";
import { Button } from "../../ui/Button";
import { ErrorBox } from "../../ui/ErrorBox";
import { notify } from "../../ui/Notices";
import { Card } from "../../ui/Page";
import { SchemaFields } from "./SchemaFields";
import styles from "./Submit.module.css";
import { argumentsOf, type FieldForm } from "./schema";
import { missingOf, problemsOf, Texts } from "./Texts";
import { useSettled } from "./useSettled";

interface Declared {
  type?: string;
  description?: string;
  default?: unknown;
  choices?: unknown[];
}

/** The form of a template: its parameters, and the same as text. */
export function TemplateForm({ template }: { template: Schemas["Template"] }) {
  const navigate = useNavigate();
  const fields = useMemo(
    () => Object.entries(template.parameters as Record<string, Declared>).map(fieldOf),
    [template],
  );
  const [typed, setTyped] = useState<Record<string, string>>({});
  const parameters = useMemo(() => argumentsOf(fields, typed), [fields, typed]);
  const settled = useSettled(parameters, 250);
  const params = {
    path: { name: template.name },
    query: { namespace: template.namespace },
  };
  const preview = useQuery({
    queryKey: ["preview", template.namespace, template.name, settled],
    queryFn: ({ signal }) =>
      answer(
        api.POST("/api/v1/templates/{name}/preview", {
          signal,
          params,
          body: { parameters: settled as Record<string, never> },
        }),
      ),
    placeholderData: (before) => before,
    gcTime: 10_000,
  });
  const starting = useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/v1/templates/{name}/start", {
          params,
          body: { parameters: parameters as Record<string, never> },
        }),
      ),
    onSuccess: (reply) => {
      notify(`Started workflow ${reply.workflow}`);
      void navigate({
        to: "/workflows/$workflow",
        params: { workflow: String(reply.workflow) },
      });
    },
  });
  const touched = Object.values(typed).some((text) => text !== "") || starting.submittedAt > 0;
  const { byField, others } = problemsOf(preview.data, touched);
  return (
    <div className={styles.columns}>
      <form
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          starting.mutate();
        }}
      >
        <Card className={styles.stack}>
          <h2>Parameters</h2>
          {fields.length === 0 && <p className={styles.soft}>It takes none.</p>}
          <SchemaFields
            fields={fields}
            typed={typed}
            problems={byField("parameters.")}
            onType={(name, text) => setTyped((before) => ({ ...before, [name]: text }))}
          />
        </Card>
        {starting.error && <ErrorBox error={starting.error} />}
        <div className={styles.send}>
          <Button kind="primary" type="submit" busy={starting.isPending}>
            Start
          </Button>
        </div>
      </form>
      <Texts
        preview={preview.data}
        error={preview.error}
        others={others}
        missing={missingOf(fields, typed)}
        touched={touched}
      />
    </div>
  );
}

function fieldOf([name, declared]: [string, Declared]): FieldForm {
  const fallback = declared.default;
  const shown = fallback === undefined ? "" : `Default: ${String(fallback)}.`;
  return {
    name,
    kind: kindOf(declared),
    required: fallback === undefined || fallback === null,
    hint: [declared.description, shown].filter(Boolean).join(" "),
    choices: (declared.choices ?? []).map(String),
    fallback,
  };
}

function kindOf(declared: Declared): FieldForm["kind"] {
  if (declared.choices && declared.type !== "list") return "choice";
  if (declared.type === "boolean") return "switch";
  if (declared.type === "integer" || declared.type === "number") return "number";
  if (declared.type === "list") return "lines";
  return "text";
}
