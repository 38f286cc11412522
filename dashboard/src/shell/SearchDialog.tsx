import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, useState } from "react";
import { Dialog } from "../ui/Dialog";
import { TextField } from "../ui/Field";
import { Icon, type IconName } from "../ui/Icon";
import type { Place } from "./places";
import styles from "./SearchDialog.module.css";

interface Target {
  key: string;
  label: string;
  icon: IconName;
  to: string;
  params?: Record<string, string>;
  search?: Record<string, string>;
}

interface Props {
  places: readonly Place[];
  onClose: () => void;
}

/** Goes to a job by its number, to jobs and workers by text, or to a view by its name. */
export function SearchDialog({ places, onClose }: Props) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const navigate = useNavigate();
  const targets = targetsOf(text.trim(), places);
  function go(target: Target | undefined): void {
    if (!target) return;
    onClose();
    const { to, params, search } = target;
    void navigate({ to, params, search } as never);
  }
  function onKeyDown(event: KeyboardEvent): void {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step) {
      event.preventDefault();
      setAt((at + step + targets.length) % targets.length);
    }
    if (event.key === "Enter") {
      event.preventDefault();
      go(targets[at]);
    }
  }
  return (
    <Dialog title="Search" onClose={onClose}>
      <TextField
        label="Search"
        hideLabel
        placeholder="A number, a name, or a view"
        value={text}
        autoFocus
        role="combobox"
        aria-expanded
        aria-controls="search-results"
        aria-activedescendant={`search-${at}`}
        autoComplete="off"
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div id="search-results" role="listbox" aria-label="Results" className={styles.results}>
        {targets.map((target, place) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field above handles the keys.
          <div
            key={target.key}
            id={`search-${place}`}
            role="option"
            aria-selected={place === at}
            className={styles.result}
            onClick={() => go(target)}
          >
            <Icon name={target.icon} />
            {target.label}
          </div>
        ))}
      </div>
    </Dialog>
  );
}

function targetsOf(text: string, places: readonly Place[]): Target[] {
  const found: Target[] = [];
  const number = /^#?(\d{1,15})$/.exec(text)?.[1];
  if (number) {
    const label = `Job ${number}`;
    found.push({ key: "job", label, icon: "jobs", to: "/jobs/$job", params: { job: number } });
    found.push({
      key: "workflow",
      label: `Workflow ${number}`,
      icon: "workflows",
      to: "/workflows/$workflow",
      params: { workflow: number },
    });
  }
  const lower = text.toLowerCase();
  for (const place of places) {
    if (place.isBeside || !place.label.toLowerCase().includes(lower)) continue;
    found.push({ key: place.to, label: place.label, icon: place.icon, to: place.to });
  }
  if (text && !number) {
    const quoted = `“${text}”`;
    found.push({
      key: "jobs",
      label: `Jobs with ${quoted}`,
      icon: "jobs",
      to: "/jobs",
      search: { text },
    });
    found.push({
      key: "workers",
      label: `Workers with ${quoted}`,
      icon: "workers",
      to: "/workers",
      search: { name: text },
    });
    found.push({
      key: "workflows",
      label: `Workflows with ${quoted}`,
      icon: "workflows",
      to: "/workflows",
      search: { text },
    });
  }
  return found;
}
