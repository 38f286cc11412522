import type { ButtonHTMLAttributes, ReactNode, Ref } from "react";
import styles from "./Button.module.css";
import { Icon, type IconName } from "./Icon";

/** A link that looks like a small button: it leads to where something is done. */
export const SMALL_LINK = `${styles.button} ${styles.small} ${styles.link}`;

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: "plain" | "primary" | "danger" | "quiet";
  small?: boolean;
  icon?: IconName;
  /** Something is under way: the button cannot be pressed again. */
  busy?: boolean;
  children?: ReactNode;
  ref?: Ref<HTMLButtonElement>;
}

export function Button({
  kind = "plain",
  small = false,
  icon,
  busy = false,
  children,
  className = "",
  disabled,
  ...others
}: Props) {
  const classes = [styles.button, styles[kind], small ? styles.small : "", className];
  return (
    <button
      type="button"
      className={classes.filter(Boolean).join(" ")}
      disabled={disabled || busy}
      aria-busy={busy || undefined}
      {...others}
    >
      {icon && <Icon name={icon} size={small ? 14 : 16} />}
      {children}
    </button>
  );
}

/** A button that is an icon; `label` says what it does. */
export function IconButton({ label, ...others }: Omit<Props, "children"> & { label: string }) {
  return (
    <Button
      kind="quiet"
      {...others}
      className={`${styles.icon} ${others.className ?? ""}`}
      aria-label={label}
      title={label}
    />
  );
}
