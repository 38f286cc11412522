import { type InputHTMLAttributes, type ReactNode, type SelectHTMLAttributes, useId } from "react";
import styles from "./Field.module.css";

interface FieldProps {
  label: string;
  /** A line of explanation, or what is wrong. */
  hint?: ReactNode;
  problem?: string;
  /** The label is for screen readers only. */
  hideLabel?: boolean;
}

interface TextProps extends FieldProps, InputHTMLAttributes<HTMLInputElement> {
  /** Texts that the browser offers while somebody types. */
  suggestions?: readonly string[];
}

export function TextField(props: TextProps) {
  const { label, hint, problem, hideLabel = false, className = "", suggestions, ...others } = props;
  const id = useId();
  return (
    <div className={`${styles.field} ${className}`}>
      <label htmlFor={id} className={hideLabel ? "visually-hidden" : styles.label}>
        {label}
      </label>
      <input
        id={id}
        className={styles.input}
        aria-invalid={problem ? true : undefined}
        aria-describedby={hint || problem ? `${id}-hint` : undefined}
        list={suggestions ? `${id}-list` : undefined}
        {...others}
      />
      {suggestions && (
        <datalist id={`${id}-list`}>
          {suggestions.map((text) => (
            <option key={text} value={text} />
          ))}
        </datalist>
      )}
      <Hint id={id} hint={hint} problem={problem} />
    </div>
  );
}

export function SelectField(
  props: FieldProps & SelectHTMLAttributes<HTMLSelectElement> & { children: ReactNode },
) {
  const { label, hint, problem, hideLabel = false, className = "", children, ...others } = props;
  const id = useId();
  return (
    <div className={`${styles.field} ${className}`}>
      <label htmlFor={id} className={hideLabel ? "visually-hidden" : styles.label}>
        {label}
      </label>
      <select id={id} className={styles.input} {...others}>
        {children}
      </select>
      <Hint id={id} hint={hint} problem={problem} />
    </div>
  );
}

export function Checkbox(props: { label: string } & InputHTMLAttributes<HTMLInputElement>) {
  const { label, ...others } = props;
  return (
    <label className={styles.check}>
      <input type="checkbox" {...others} />
      {label}
    </label>
  );
}

function Hint({ id, hint, problem }: { id: string; hint?: ReactNode; problem?: string }) {
  if (!hint && !problem) return null;
  return (
    <p id={`${id}-hint`} className={problem ? styles.problem : styles.hint}>
      {problem ?? hint}
    </p>
  );
}
