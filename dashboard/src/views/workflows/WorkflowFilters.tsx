import { type FormEvent, useState } from "react";
import { TextField } from "../../ui/Field";
import { type ActiveFilter, FilterBar } from "../../ui/FilterBar";
import { Menu } from "../../ui/Menu";
import { lookOf } from "../../ui/states";
import type { WorkflowsSearch } from "./route";
import { WORKFLOW_STATES } from "./states";

const WORDS: Record<string, string> = { text: "name contains" };

interface Props {
  search: WorkflowsSearch;
  onChange: (search: WorkflowsSearch) => void;
}

/** The filters of the list: states, name, label and namespace. */
export function WorkflowFilters({ search, onChange }: Props) {
  const states = search.state ?? [];
  function toggle(state: string): void {
    const next = states.includes(state) ? states.filter((s) => s !== state) : [...states, state];
    onChange({ ...search, state: next.length > 0 ? next : undefined });
  }
  const active: ActiveFilter[] = [
    ...states.map((state) => ({
      key: `state-${state}`,
      label: lookOf(state).label,
      onRemove: () => toggle(state),
    })),
    ...(["text", "name", "namespace", "key"] as const).flatMap((field) =>
      search[field]
        ? [
            {
              key: field,
              label: `${WORDS[field] ?? field}: ${search[field]}`,
              onRemove: () => onChange({ ...search, [field]: undefined }),
            },
          ]
        : [],
    ),
    ...(search.label ?? []).map((label) => ({
      key: `label-${label}`,
      label,
      onRemove: () =>
        onChange({ ...search, label: search.label?.filter((other) => other !== label) }),
    })),
  ];
  return (
    <FilterBar active={active} onClear={() => onChange({})}>
      <Menu
        label="State"
        stays
        align="left"
        items={WORKFLOW_STATES.map((state) => ({
          label: lookOf(state).label,
          checked: states.includes(state),
          onSelect: () => toggle(state),
        }))}
      />
      <Entry
        label="Part of a name"
        placeholder="Part of a name"
        onEnter={(text) => onChange({ ...search, text })}
      />
      <Entry
        label="Label"
        placeholder="Label, team=a"
        onEnter={(label) => onChange({ ...search, label: [...(search.label ?? []), label] })}
      />
      <Entry
        label="Namespace"
        placeholder="Namespace"
        onEnter={(namespace) => onChange({ ...search, namespace })}
      />
    </FilterBar>
  );
}

interface EntryProps {
  label: string;
  placeholder: string;
  onEnter: (value: string) => void;
}

/** A field whose text becomes a filter with Enter. */
function Entry({ label, placeholder, onEnter }: EntryProps) {
  const [text, setText] = useState("");
  function submit(event: FormEvent): void {
    event.preventDefault();
    const value = text.trim();
    if (!value) return;
    onEnter(value);
    setText("");
  }
  return (
    <form onSubmit={submit}>
      <TextField
        label={label}
        hideLabel
        placeholder={placeholder}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
    </form>
  );
}
