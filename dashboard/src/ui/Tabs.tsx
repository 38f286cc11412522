import {
  type KeyboardEvent,
  type ReactNode,
  type RefObject,
  useEffect,
  useId,
  useRef,
} from "react";
import styles from "./Tabs.module.css";

export interface Tab<T extends string> {
  key: T;
  label: ReactNode;
}

interface Props<T extends string> {
  label: string;
  tabs: readonly Tab<T>[];
  value: T;
  onChange: (key: T) => void;
  children: ReactNode;
}

/** Tabs with their panel; keep the chosen one in the URL. */
export function Tabs<T extends string>({ label, tabs, value, onChange, children }: Props<T>) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  useChosenInSight(list, value);
  function onKeyDown(event: KeyboardEvent): void {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    const at = tabs.findIndex((tab) => tab.key === value);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    if (!next) return;
    event.preventDefault();
    onChange(next.key);
    list.current?.querySelector<HTMLElement>(`[data-key="${next.key}"]`)?.focus();
  }
  return (
    <>
      <div
        className={styles.list}
        role="tablist"
        aria-label={label}
        ref={list}
        onKeyDown={onKeyDown}
      >
        {tabs.map((tab) => (
          <button
            key={tab.key}
            type="button"
            role="tab"
            id={`${id}-${tab.key}`}
            data-key={tab.key}
            aria-selected={tab.key === value}
            aria-controls={`${id}-panel`}
            tabIndex={tab.key === value ? 0 : -1}
            className={styles.tab}
            onClick={() => onChange(tab.key)}
          >
            {tab.label}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${value}`}>
        {children}
      </div>
    </>
  );
}

/** Scrolls the list so that the chosen tab is in sight, also when fonts or labels change. */
function useChosenInSight(list: RefObject<HTMLDivElement | null>, value: string): void {
  // biome-ignore lint/correctness/useExhaustiveDependencies: another tab may be out of sight.
  useEffect(() => {
    const box = list.current;
    if (!box) return;
    const observer = new ResizeObserver(() => {
      const chosen = box.querySelector<HTMLElement>("[aria-selected=true]");
      if (!chosen) return;
      const left = chosen.offsetLeft - box.offsetLeft;
      const beyond = left + chosen.offsetWidth - box.clientWidth;
      box.scrollLeft = Math.max(Math.min(box.scrollLeft, left), beyond);
    });
    for (const tab of box.children) observer.observe(tab);
    return () => observer.disconnect();
  }, [list, value]);
}
