import { type TextareaHTMLAttributes, useId } from "react";
import { SelectField, TextField } from "../../ui/Field";
import styles from "./Submit.module.css";
import type { FieldForm } from "./schema";

interface Props {
  fields: readonly FieldForm[];
  typed: Readonly<Record<string, string>>;
  onType: (name: string, text: string) => void;
  /** What the server found wrong, by the names of fields. */
  problems: Readonly<Record<string, string>>;
  /** Known values, by the names of fields. */
  suggestions?: Readonly<Record<string, readonly string[]>>;
}

/** A field for each argument, by its schema. */
export function SchemaFields({ fields, typed, onType, problems, suggestions = {} }: Props) {
  return fields.map((field) => (
    <OneField
      key={field.name}
      field={field}
      text={typed[field.name] ?? ""}
      problem={problems[field.name]}
      suggestions={suggestions[field.name]}
      onType={(text) => onType(field.name, text)}
    />
  ));
}

interface OneProps {
  field: FieldForm;
  text: string;
  problem?: string;
  suggestions?: readonly string[];
  onType: (text: string) => void;
}

function OneField({ field, text, problem, suggestions, onType }: OneProps) {
  const label = field.required ? `${field.name} *` : field.name;
  const common = { label, hint: field.hint || undefined, problem, required: field.required };
  if (field.kind === "choice" || field.kind === "switch") {
    const choices = field.kind === "switch" ? ["true", "false"] : field.choices;
    return (
      <SelectField {...common} value={text} onChange={(event) => onType(event.target.value)}>
        <option value="">{field.required ? "choose" : "default"}</option>
        {choices.map((one) => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
      </SelectField>
    );
  }
  if (field.kind === "lines" || field.kind === "json") {
    return (
      <TextArea
        {...common}
        rows={field.kind === "lines" ? 3 : 2}
        value={text}
        onChange={(event) => onType(event.target.value)}
      />
    );
  }
  return (
    <TextField
      {...common}
      inputMode={field.kind === "number" ? "decimal" : undefined}
      suggestions={suggestions}
      value={text}
      onChange={(event) => onType(event.target.value)}
    />
  );
}

function TextArea(
  props: {
    label: string;
    hint?: string;
    problem?: string;
  } & TextareaHTMLAttributes<HTMLTextAreaElement>,
) {
  const { label, hint, problem, ...others } = props;
  const id = useId();
  return (
    <div className={styles.field}>
      <label htmlFor={id} className={styles.label}>
        {label}
      </label>
      <textarea
        id={id}
        className={styles.area}
        spellCheck={false}
        aria-invalid={problem ? true : undefined}
        aria-describedby={hint || problem ? `${id}-hint` : undefined}
        {...others}
      />
      {(hint || problem) && (
        <p id={`${id}-hint`} className={problem ? styles.problem : styles.soft}>
          {problem ?? hint}
        </p>
      )}
    </div>
  );
}
