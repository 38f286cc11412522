import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { answer, api } from "../../api/client";
import { ApiError, inWords } from "../../api/errors";
import { Button } from "../../ui/Button";
import { CodeBlock } from "../../ui/CodeBlock";
import { SelectField, TextField } from "../../ui/Field";
import { notify } from "../../ui/Notices";
import { entryOf, type Parameter } from "./parameters";
import styles from "./Templates.module.css";
import type { Template } from "./TemplatesView";

interface Props {
  template: Template;
  parameters: readonly Parameter[];
}

/** A field for each parameter, and the command that does the same. */
export function StartForm({ template, parameters }: Props) {
  const navigate = useNavigate();
  const [entered, setEntered] = useState<Record<string, string>>(() =>
    Object.fromEntries(parameters.map((one) => [one.name, one.initial])),
  );
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  const given = Object.fromEntries(
    parameters
      .map((one) => [one.name, entryOf(one, entered[one.name] ?? "")] as const)
      .filter(([, value]) => value !== undefined),
  );
  async function start(event: FormEvent): Promise<void> {
    event.preventDefault();
    setBusy(true);
    setProblem(undefined);
    try {
      const done = await answer(
        api.POST("/api/v1/templates/{name}/start", {
          params: { path: { name: template.name }, query: { namespace: template.namespace } },
          body: { parameters: given as Record<string, never>, version: template.version },
        }),
      );
      notify(done.applied ? `Started workflow ${done.workflow}` : `Workflow ${done.workflow} runs`);
      await navigate({
        to: "/workflows/$workflow",
        params: { workflow: String(done.workflow) },
      });
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  }
  const wrong = problem instanceof ApiError ? problem.field?.replace("parameters.", "") : undefined;
  return (
    <form className={styles.form} onSubmit={(event) => void start(event)}>
      {parameters.map((one) => (
        <Entry
          key={one.name}
          parameter={one}
          value={entered[one.name] ?? ""}
          problem={wrong === one.name ? inWords(problem) : undefined}
          onChange={(value) => setEntered({ ...entered, [one.name]: value })}
        />
      ))}
      {parameters.length === 0 && <p>It has no parameters.</p>}
      {problem !== undefined && (
        <p role="alert" className={styles.problem}>
          {inWords(problem)}
        </p>
      )}
      <Button type="submit" kind="primary" icon="play" busy={busy}>
        Start
      </Button>
      <CodeBlock text={command(template, given)} label="Copy the command" />
    </form>
  );
}

interface EntryProps {
  parameter: Parameter;
  value: string;
  problem: string | undefined;
  onChange: (value: string) => void;
}

function Entry({ parameter, value, problem, onChange }: EntryProps) {
  const hint = [
    parameter.description,
    parameter.kind === "list" ? "Separate values by commas." : "",
  ]
    .filter(Boolean)
    .join(" ");
  const shared = { label: parameter.name, hint: hint || undefined, problem, value };
  const choices = parameter.kind === "boolean" ? ["true", "false"] : parameter.choices;
  if (choices.length > 0 && parameter.kind !== "list") {
    return (
      <SelectField {...shared} onChange={(event) => onChange(event.target.value)}>
        {!choices.includes(value) && <option value={value}>{value || "Choose"}</option>}
        {choices.map((one) => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
      </SelectField>
    );
  }
  const isNumber = parameter.kind === "integer" || parameter.kind === "number";
  return (
    <TextField
      {...shared}
      required={parameter.required}
      inputMode={isNumber ? "decimal" : undefined}
      onChange={(event) => onChange(event.target.value)}
    />
  );
}

/** Returns the command line that starts the same. */
function command(template: Template, given: Record<string, unknown>): string {
  const values = Object.entries(given).map(([name, value]) => {
    const text = Array.isArray(value) ? value.join(",") : String(value);
    return `--param ${quoted(`${name}=${text}`)}`;
  });
  const place = template.namespace === "default" ? [] : [`--namespace ${template.namespace}`];
  return ["windlass workflows start", quoted(template.name), ...values, ...place].join(" ");
}

function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
