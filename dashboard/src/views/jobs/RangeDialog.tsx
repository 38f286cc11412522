import { type FormEvent, useState } from "react";
import { Button } from "../../ui/Button";
import { Dialog } from "../../ui/Dialog";
import { TextField } from "../../ui/Field";
import { localTime } from "../../ui/format";
import type { JobsFilter } from "../../ui/links";
import { isAboutEnds, SINCE } from "./filter";
import styles from "./Jobs.module.css";

interface Props {
  search: JobsFilter;
  onChange: (search: JobsFilter) => void;
  onClose: () => void;
}

/** Asks from when to when; either may be left out. Times are those of the person's clock. */
export function RangeDialog({ search, onChange, onClose }: Props) {
  const range = search.since === undefined ? undefined : SINCE[search.since];
  const begin = range ? new Date(Date.now() - range.seconds * 1_000).toISOString() : search.since;
  const [from, setFrom] = useState(begin ? localTime(begin) : "");
  const [to, setTo] = useState(search.until ? localTime(search.until) : "");
  const isWrong = from !== "" && to !== "" && Date.parse(from) >= Date.parse(to);
  const what = isAboutEnds(search) ? "ended" : "were created";
  function apply(event?: FormEvent): void {
    event?.preventDefault();
    if (isWrong) return;
    onChange({ ...search, since: momentOf(from), until: momentOf(to) });
    onClose();
  }
  const actions = (
    <>
      <Button onClick={onClose}>Back</Button>
      <Button kind="primary" disabled={isWrong} onClick={() => apply()}>
        Show these jobs
      </Button>
    </>
  );
  return (
    <Dialog title={`Jobs that ${what} between two times`} onClose={onClose} actions={actions}>
      <form onSubmit={apply} className={styles.range}>
        <TextField
          label="From"
          type="datetime-local"
          step={1}
          autoFocus
          value={from}
          onChange={(event) => setFrom(event.target.value)}
        />
        <TextField
          label="Before"
          type="datetime-local"
          step={1}
          value={to}
          problem={isWrong ? "This must be after the time above." : undefined}
          hint="Empty: up to now."
          onChange={(event) => setTo(event.target.value)}
        />
        <button type="submit" hidden aria-label="Show these jobs" />
      </form>
    </Dialog>
  );
}

function momentOf(local: string): string | undefined {
  const at = Date.parse(local);
  return Number.isNaN(at) ? undefined : new Date(at).toISOString();
}
