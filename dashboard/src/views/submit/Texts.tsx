import type { Schemas } from "../../api/client";
import { CodeBlock } from "../../ui/CodeBlock";
import { ErrorBox } from "../../ui/ErrorBox";
import styles from "./Submit.module.css";
import type { FieldForm } from "./schema";

type Preview = Schemas["Preview"];

/** The same job as a command line, as Python, and as a call without a queue. */
export function Texts(props: {
  preview: Preview | undefined;
  error: unknown;
  others: readonly string[];
  /** The names of required fields that are empty. */
  missing: readonly string[];
  /** Whether somebody has typed or tried to submit: before that, nothing is wrong yet. */
  touched: boolean;
}) {
  const { preview, error, others, missing, touched } = props;
  const problems = (preview?.problems.length ?? 0) + missing.length;
  const first = missing.length > 0 ? `fill in ${missing.join(", ")}` : others[0];
  const wrong = touched ? styles.problem : styles.soft;
  return (
    <aside className={styles.texts} aria-label="The same as text">
      {error ? <ErrorBox error={error} /> : null}
      <p role="status" className={problems > 0 ? wrong : styles.good}>
        {preview === undefined && "Checking…"}
        {preview && problems === 0 && "Ready to submit"}
        {preview && problems > 0 && touched && `Not ready: ${first ?? "see the fields"}`}
        {preview && problems > 0 && !touched && "Fill in the form: it is checked as you type."}
      </p>
      {(preview?.notes ?? []).map((note) => (
        <p key={note} className={styles.warn}>
          {note}
        </p>
      ))}
      {preview?.command && (
        <>
          <h2>Command line</h2>
          <CodeBlock text={preview.command} label="Copy the command line" />
        </>
      )}
      {preview?.python && (
        <>
          <h2>Python</h2>
          <CodeBlock text={preview.python} label="Copy the Python" />
        </>
      )}
      {preview?.call && (
        <>
          <h2>Here and now, without a queue</h2>
          <CodeBlock text={preview.call} label="Copy the call" />
        </>
      )}
    </aside>
  );
}

/** Sorts problems by their fields; those of a form that nobody has touched wait. */
export function problemsOf(preview: Preview | undefined, touched: boolean) {
  const found = preview?.problems ?? [];
  const byField = (prefix: string): Record<string, string> => {
    const problems: Record<string, string> = {};
    if (!touched && prefix) return problems;
    for (const one of found) {
      if (!one.field.startsWith(prefix)) continue;
      const name = /^[^.[]+/.exec(one.field.slice(prefix.length))?.[0];
      if (name) problems[name] ??= one.message;
    }
    return problems;
  };
  return { byField, others: found.map((one) => one.message) };
}

/** Returns the names of required fields that are empty. */
export function missingOf(
  fields: readonly FieldForm[],
  typed: Readonly<Record<string, string>>,
): string[] {
  return fields.filter((field) => field.required && !typed[field.name]).map((field) => field.name);
}
