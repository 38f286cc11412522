import { type KeyboardEvent, useEffect, useState } from "react";
import { API_BASE } from "../../../base";
import { Button, IconButton } from "../../../ui/Button";
import { Bytes } from "../../../ui/Bytes";
import { Empty } from "../../../ui/Empty";
import { ErrorBox } from "../../../ui/ErrorBox";
import { Checkbox, SelectField } from "../../../ui/Field";
import { clock, counted } from "../../../ui/format";
import { Loading } from "../../../ui/Loading";
import { useStored } from "../../../ui/stored";
import { AnsiText } from "./AnsiText";
import { LogSearch } from "./LogSearch";
import styles from "./LogView.module.css";
import { useLines } from "./useLines";
import { type LogLine, useLog } from "./useLog";

interface Props {
  job: number;
  attempts: readonly number[];
  /** The chosen one; the newest without it. */
  attempt: number | undefined;
  /** A line that the address names. */
  line: number | undefined;
  onLine: (line: number) => void;
  onAttempt: (attempt: number | undefined) => void;
}

/** The log of an attempt: any size, live, with colours, searched on the server. */
export function LogView(props: Props) {
  const { job, attempt, line: marked, onLine } = props;
  const log = useLog(job, attempt);
  const [box, setBox] = useState<HTMLDivElement | null>(null);
  const total = log.status?.total ?? 0;
  const lines = useLines(box, total);
  const [times, setTimes] = useStored("log.times", false);
  const [follow, setFollow] = useState(marked === undefined);
  const { ensure } = log;
  const { first, shown, goTo, toEnd } = lines;
  const last = Math.min(total, first + shown + 1);
  const isThere = total > 0;

  useEffect(() => {
    if (isThere) ensure(first, last);
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: the end moves with the room there is.
  useEffect(() => {
    if (follow && total > 0) toEnd();
  }, [follow, total, toEnd, shown]);
  useEffect(() => {
    if (marked !== undefined && isThere) {
      setFollow(false);
      goTo(marked);
    }
  }, [marked, isThere, goTo]);

  if (log.status === undefined) {
    return log.error ? <ErrorBox error={log.error} /> : <Loading rows={8} />;
  }
  if (!isThere && log.status.isOver) return <Empty title="It wrote nothing" />;
  const numbers = Array.from({ length: Math.max(0, last - first + 1) }, (_, n) => first + n);

  function onKeyDown(event: KeyboardEvent): void {
    const step = { PageDown: shown - 1, PageUp: 1 - shown, ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "End") toEnd();
    else if (event.key === "Home") goTo(1);
    else if (step) goTo(first + step + Math.floor(shown / 3));
    else return;
    event.preventDefault();
    if (event.key !== "End") setFollow(false);
  }

  return (
    <div className={styles.log}>
      <div className={styles.bar}>
        <LogSearch job={job} attempt={attempt} bytes={log.status.bytes} onFound={onLine} />
        <div className={styles.options}>
          {props.attempts.length > 1 && (
            <SelectField
              label="Attempt"
              hideLabel
              value={attempt ?? ""}
              onChange={(event) => props.onAttempt(Number(event.target.value) || undefined)}
            >
              <option value="">Newest attempt</option>
              {props.attempts.map((number) => (
                <option key={number} value={number}>
                  Attempt {number}
                </option>
              ))}
            </SelectField>
          )}
          <span className={styles.size}>
            {counted(total, "line")}, <Bytes value={log.status.bytes} />
            {log.status.state === "lost" && " (the rest was lost)"}
          </span>
          <Checkbox
            label="Times"
            checked={times}
            onChange={(event) => setTimes(event.target.checked)}
          />
          <Checkbox
            label="Follow"
            checked={follow}
            onChange={(event) => setFollow(event.target.checked)}
          />
          <IconButton
            icon="up"
            label="To the start of the log"
            small
            onClick={() => {
              setFollow(false);
              goTo(1);
            }}
          />
          <IconButton icon="down" label="To the end of the log" small onClick={toEnd} />
          <a className={styles.raw} href={rawAddress(job, attempt)} download={`job-${job}.log`}>
            Download
          </a>
        </div>
      </div>
      <div
        ref={setBox}
        className={styles.scroller}
        role="log"
        aria-label={`Log of job ${job}`}
        aria-live="off"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls by keyboard.
        tabIndex={0}
        onKeyDown={onKeyDown}
        onWheel={(event) => event.deltaY < 0 && setFollow(false)}
        onPointerDown={() => setFollow(false)}
      >
        <div className={styles.spacer} style={{ height: lines.height }}>
          <div className={styles.window} style={{ height: lines.room }}>
            <div style={{ transform: `translateY(${-lines.shift}px)` }}>
              {numbers.map((number) => (
                <Row
                  key={number}
                  number={number}
                  line={log.line(number)}
                  times={times}
                  marked={number === marked}
                  onLine={onLine}
                />
              ))}
            </div>
          </div>
        </div>
      </div>
      {!log.status.isOver && !follow && (
        <Button small className={styles.jump} icon="down" onClick={() => setFollow(true)}>
          Follow
        </Button>
      )}
    </div>
  );
}

interface RowProps {
  number: number;
  line: LogLine | undefined;
  times: boolean;
  marked: boolean;
  onLine: (line: number) => void;
}

function Row({ number, line, times, marked, onLine }: RowProps) {
  return (
    <div className={styles.row} data-marked={marked || undefined} data-line={number}>
      <button
        type="button"
        className={styles.number}
        tabIndex={-1}
        aria-label={`Link to line ${number}`}
        onClick={() => onLine(number)}
      >
        {number}
      </button>
      {times && <time className={styles.time}>{line?.at ? clock(Date.parse(line.at)) : ""}</time>}
      <span className={styles.text}>
        {line ? <AnsiText text={line.text} start={line.style} /> : "…"}
        {line?.is_cut && <span className={styles.cut}> … ({line.size} bytes in this line)</span>}
      </span>
    </div>
  );
}

function rawAddress(job: number, attempt: number | undefined): string {
  const query = attempt === undefined ? "" : `?attempt=${attempt}`;
  return `${API_BASE}/api/v1/jobs/${job}/log${query}`;
}
