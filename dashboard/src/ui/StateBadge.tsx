import styles from "./StateBadge.module.css";
import { StateMark } from "./StateMark";
import { lookOf } from "./states";

interface Props {
  state: string;
  /** Without a ground, for dense tables. */
  plain?: boolean;
  /** Other words than the state's own. */
  label?: string;
}

/** Shows a state by colour, shape and word. */
export function StateBadge({ state, plain = false, label }: Props) {
  const look = lookOf(state);
  return (
    <span className={`${styles.badge} ${plain ? styles.plain : ""}`} data-tone={look.tone}>
      <StateMark mark={look.mark} />
      {label ?? look.label}
    </span>
  );
}
