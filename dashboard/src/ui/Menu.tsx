import {
  type KeyboardEvent,
  type ReactNode,
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import { Button } from "./Button";
import type { IconName } from "./Icon";
import styles from "./Menu.module.css";

export interface MenuItem {
  label: string;
  onSelect: () => void;
  icon?: IconName;
  danger?: boolean;
  disabled?: boolean;
  /** Shown as a switch. */
  checked?: boolean;
}

interface Props {
  label: string;
  items: readonly MenuItem[];
  icon?: IconName;
  /** Shows the icon only. */
  iconOnly?: boolean;
  small?: boolean;
  kind?: "plain" | "quiet";
  align?: "left" | "right";
  /** Stays open after a choice, for several switches. */
  stays?: boolean;
  /** A sentence under the items, such as why they cannot be chosen. */
  note?: string;
  children?: ReactNode;
}

/** A button that opens a list of actions. */
export function Menu(props: Props) {
  const { label, items, icon, iconOnly = false, align = "right", stays = false } = props;
  const [open, setOpen] = useState(false);
  const ref = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    if (open && list.current) keepInside(list.current);
  }, [open]);
  useEffect(() => {
    if (!open) return;
    ref.current?.querySelector<HTMLElement>('[role^="menuitem"]:not([disabled])')?.focus();
    const leave = (event: PointerEvent) => {
      if (!ref.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", leave);
    return () => document.removeEventListener("pointerdown", leave);
  }, [open]);
  function onKeyDown(event: KeyboardEvent): void {
    if (event.key === "Escape" && open) {
      event.stopPropagation();
      setOpen(false);
      button.current?.focus();
    }
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (!step || !open) return;
    event.preventDefault();
    const all = ref.current?.querySelectorAll<HTMLElement>('[role^="menuitem"]:not([disabled])');
    const found = [...(all ?? [])];
    const at = found.indexOf(document.activeElement as HTMLElement);
    found[(at + step + found.length) % found.length]?.focus();
  }
  function choose(item: MenuItem): void {
    item.onSelect();
    if (stays) return;
    setOpen(false);
    button.current?.focus();
  }
  return (
    <div className={styles.menu} ref={ref} onKeyDown={onKeyDown} role="none">
      <Button
        ref={button}
        kind={props.kind ?? "plain"}
        small={props.small}
        icon={icon}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        aria-label={iconOnly ? label : undefined}
        title={iconOnly ? label : undefined}
        onClick={() => setOpen(!open)}
      >
        {iconOnly ? props.children : (props.children ?? label)}
      </Button>
      {open && (
        <div
          id={id}
          ref={list}
          role="menu"
          aria-label={label}
          className={styles.list}
          data-align={align}
        >
          {items.map((item) => (
            <button
              key={item.label}
              type="button"
              role={item.checked === undefined ? "menuitem" : "menuitemcheckbox"}
              aria-checked={item.checked}
              className={styles.item}
              data-danger={item.danger || undefined}
              disabled={item.disabled}
              onClick={() => choose(item)}
            >
              {item.checked !== undefined && (
                <span className={styles.check} aria-hidden="true">
                  {item.checked ? "✓" : ""}
                </span>
              )}
              {item.label}
            </button>
          ))}
          {props.note && <p className={styles.note}>{props.note}</p>}
        </div>
      )}
    </div>
  );
}

const MARGIN_PX = 8;

/** Moves a list sideways as far as it would leave the window. */
function keepInside(list: HTMLElement): void {
  const { left, right } = list.getBoundingClientRect();
  const width = document.documentElement.clientWidth;
  const shift = Math.max(MARGIN_PX - left, Math.min(0, width - MARGIN_PX - right));
  if (shift !== 0) list.style.transform = `translateX(${shift}px)`;
}
