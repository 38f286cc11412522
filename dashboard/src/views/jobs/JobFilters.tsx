import { useEffect, useState } from "react";
import { TextField } from "../../ui/Field";
import { FilterBar } from "../../ui/FilterBar";
import type { JobsFilter } from "../../ui/links";
import { Menu } from "../../ui/Menu";
import { JOB_STATES, lookOf } from "../../ui/states";
import { describe, SINCE, SORTS } from "./filter";
import styles from "./Jobs.module.css";
import { RangeDialog } from "./RangeDialog";
import { SavedFilters } from "./SavedFilters";
import { useSuggestions } from "./useSuggestions";

interface Props {
  search: JobsFilter;
  onChange: (search: JobsFilter) => void;
}

const FIELDS = {
  queue: "queue",
  task: "task",
  name: "name",
  label: "label",
  namespace: "namespace",
  submitted_by: "by",
  failure: "failure",
  workflow: "workflow",
  state: "state",
} as const;
const LISTS = ["label", "failure", "state"]; // of which there may be several
const WORD = /(?:[^\s"]|"[^"]*"?)+/g; // up to a space that is in no quotes

/** The filters of the list; every one of them is in the URL. */
export function JobFilters({ search, onChange }: Props) {
  const [isChoosing, setChoosing] = useState(false);
  const active = describe(search).map(({ key, label, without }) => ({
    key,
    label,
    onRemove: () => onChange(without),
  }));
  return (
    <FilterBar active={active} onClear={() => onChange({ sort: search.sort })}>
      <SearchField search={search} onChange={onChange} />
      <Menu
        label="State"
        icon="filter"
        align="left"
        stays
        items={JOB_STATES.map((state) => ({
          label: lookOf(state).label,
          checked: search.state?.includes(state) ?? false,
          onSelect: () => onChange({ ...search, state: toggled(search.state, state) }),
        }))}
      />
      <Menu
        label={timeLabel(search)}
        icon="clock"
        align="left"
        items={[
          {
            label: "Any time",
            checked: !search.since && !search.until,
            onSelect: () => onChange({ ...search, since: undefined, until: undefined }),
          },
          ...Object.entries(SINCE).map(([since, { label }]) => ({
            label: `Last ${label}`,
            checked: search.since === since,
            onSelect: () => onChange({ ...search, since, until: undefined }),
          })),
          {
            label: "Between two times…",
            checked: isOwnRange(search),
            onSelect: () => setChoosing(true),
          },
        ]}
      />
      {isChoosing && (
        <RangeDialog search={search} onChange={onChange} onClose={() => setChoosing(false)} />
      )}
      <Menu
        label={SORTS[search.sort ?? "newest"] ?? "Newest first"}
        align="left"
        items={Object.entries(SORTS).map(([sort, label]) => ({
          label,
          checked: (search.sort ?? "newest") === sort,
          onSelect: () => onChange({ ...search, sort: sort === "newest" ? undefined : sort }),
        }))}
      />
      <SavedFilters search={search} onChange={onChange} />
    </FilterBar>
  );
}

/**
 * One field for all: plain text is looked for in names, commands and errors, `/…/` is a regular
 * expression, and `queue:gpu`, `name:"unit tests"`, `label:team=qa` and others filter.
 */
function SearchField({ search, onChange }: Props) {
  const shown = search.regex ? `/${search.regex}/` : (search.text ?? "");
  const [text, setText] = useState(shown);
  useEffect(() => setText(shown), [shown]);
  const [isUsed, setUsed] = useState(false);
  const suggestions = useSuggestions(text, isUsed);
  return (
    <form
      className={styles.search}
      onSubmit={(event) => {
        event.preventDefault();
        onChange(parsed(text, search));
      }}
    >
      <TextField
        label="Filter jobs"
        hideLabel
        type="search"
        placeholder="Text, /expression/, queue:gpu, label:team=qa …"
        suggestions={suggestions}
        title={`Text is looked for in names, commands and errors. Also: ${Object.values(FIELDS).join(":, ")}: with quotes around spaces, as in name:"unit tests"`}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onFocus={() => setUsed(true)}
        onBlur={() => text !== shown && onChange(parsed(text, search))}
      />
    </form>
  );
}

function parsed(text: string, search: JobsFilter): JobsFilter {
  const found: JobsFilter = { ...search, text: undefined, regex: undefined };
  const rest: string[] = [];
  const expression = /^\s*\/(.+)\/\s*$/.exec(text)?.[1];
  if (expression) return { ...found, regex: expression };
  for (const word of text.match(WORD) ?? []) {
    const [, prefix = "", quoted = ""] = /^(\w+):(.+)$/.exec(word) ?? [];
    const field = Object.entries(FIELDS).find(([, name]) => name === prefix)?.[0];
    const value = quoted.replaceAll('"', "");
    if (!field || !value) rest.push(word);
    else Object.assign(found, { [field]: withValue(found, field as keyof JobsFilter, value) });
  }
  const phrase = /^"([^"]+)"$/.exec(rest.join(" "))?.[1];
  return { ...found, text: (phrase ?? rest.join(" ")) || undefined };
}

/** Returns the value of a field, or the list of its values with one more. */
function withValue(search: JobsFilter, field: keyof JobsFilter, value: string): unknown {
  if (field === "workflow") return Number(value) || undefined;
  if (!LISTS.includes(field)) return value;
  return [...new Set([search[field] ?? []].flat().concat(value as never))];
}

/** Returns whether the range is none of those that the menu names. */
function isOwnRange({ since, until }: JobsFilter): boolean {
  return until !== undefined || (since !== undefined && SINCE[since] === undefined);
}

function timeLabel({ since, until }: JobsFilter): string {
  if (!since && !until) return "Any time";
  const range = since ? SINCE[since] : undefined;
  return range ? `Last ${range.label}` : "A range of time";
}

function toggled(states: string[] | undefined, state: string): string[] | undefined {
  const next = states?.includes(state)
    ? states.filter((other) => other !== state)
    : [...(states ?? []), state];
  return next.length > 0 ? next : undefined;
}
