import type { ReactNode } from "react";
import { Button } from "./Button";
import styles from "./FilterBar.module.css";
import { Icon } from "./Icon";

/** One condition that is in force. */
export interface ActiveFilter {
  key: string;
  label: string;
  onRemove: () => void;
}

interface Props {
  /** Fields and menus with which filters are set. */
  children: ReactNode;
  active?: readonly ActiveFilter[];
  onClear?: () => void;
}

/** The filters of a view: how to set them, and which are in force. */
export function FilterBar({ children, active = [], onClear }: Props) {
  return (
    <search className={styles.bar}>
      <div className={styles.fields}>{children}</div>
      {active.length > 0 && (
        <ul className={styles.active} aria-label="Filters in force">
          {active.map((filter) => (
            <li key={filter.key}>
              <button
                type="button"
                className={styles.chip}
                onClick={filter.onRemove}
                aria-label={`Remove the filter ${filter.label}`}
              >
                {filter.label}
                <Icon name="close" size={12} />
              </button>
            </li>
          ))}
          {onClear && (
            <li>
              <Button kind="quiet" small onClick={onClear}>
                Clear all
              </Button>
            </li>
          )}
        </ul>
      )}
    </search>
  );
}
