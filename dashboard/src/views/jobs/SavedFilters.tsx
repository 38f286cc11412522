import { useState } from "react";
import { Button } from "../../ui/Button";
import { Dialog } from "../../ui/Dialog";
import { TextField } from "../../ui/Field";
import type { JobsFilter } from "../../ui/links";
import { Menu } from "../../ui/Menu";
import { notify } from "../../ui/Notices";
import { useStored } from "../../ui/stored";

interface Saved {
  name: string;
  search: JobsFilter;
}

interface Props {
  search: JobsFilter;
  onChange: (search: JobsFilter) => void;
}

/** Filters that the person keeps in this browser. */
export function SavedFilters({ search, onChange }: Props) {
  const [saved, setSaved] = useStored<Saved[]>("jobs.filters", []);
  const [isNaming, setNaming] = useState(false);
  const current = saved.find((one) => same(one.search, search));
  const items = [
    ...saved.map((one) => ({
      label: one.name,
      checked: one === current,
      onSelect: () => onChange(one.search),
    })),
    { label: "Save this filter…", icon: "star" as const, onSelect: () => setNaming(true) },
  ];
  if (current) {
    items.push({
      label: `Forget “${current.name}”`,
      icon: "star" as const,
      onSelect: () => setSaved(saved.filter((one) => one !== current)),
    });
  }
  return (
    <>
      <Menu label={current?.name ?? "Saved"} icon="star" align="left" items={items} />
      {isNaming && (
        <NameDialog
          onClose={() => setNaming(false)}
          onName={(name) => {
            setSaved([...saved.filter((one) => one.name !== name), { name, search }]);
            notify(`Saved the filter “${name}” in this browser`);
            setNaming(false);
          }}
        />
      )}
    </>
  );
}

function NameDialog(props: { onClose: () => void; onName: (name: string) => void }) {
  const [name, setName] = useState("");
  const save = () => name.trim() && props.onName(name.trim());
  return (
    <Dialog
      title="Save this filter"
      onClose={props.onClose}
      actions={
        <Button kind="primary" disabled={!name.trim()} onClick={save}>
          Save
        </Button>
      }
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          save();
        }}
      >
        <TextField
          label="Name"
          autoFocus
          maxLength={60}
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
      </form>
    </Dialog>
  );
}

function same(one: JobsFilter, other: JobsFilter): boolean {
  const plain = (search: JobsFilter) =>
    JSON.stringify(
      Object.entries(search)
        .filter(([, value]) => value !== undefined)
        .sort(),
    );
  return plain(one) === plain(other);
}
