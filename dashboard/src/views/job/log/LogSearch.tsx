import { type FormEvent, useEffect, useRef, useState } from "react";
import { answer, api, type Schemas } from "../../../api/client";
import { inWords } from "../../../api/errors";
import { Button, IconButton } from "../../../ui/Button";
import { Bytes } from "../../../ui/Bytes";
import { Checkbox, TextField } from "../../../ui/Field";
import { count, counted } from "../../../ui/format";
import { AnsiText } from "./AnsiText";
import styles from "./LogSearch.module.css";

type Match = Schemas["LogMatch"];

interface Props {
  job: number;
  attempt: number | undefined;
  bytes: number;
  /** Shows a line that was found. */
  onFound: (line: number) => void;
}

interface Found {
  matches: Match[];
  next: number | null;
  scanned: number;
  busy: boolean;
  problem?: string;
}

const NOTHING: Found = { matches: [], next: null, scanned: 0, busy: false };
const LIMIT = 200; // matches of one search; more on request

/** Searches the whole log on the server, and lists the lines that match. */
export function LogSearch({ job, attempt, bytes, onFound }: Props) {
  const [text, setText] = useState("");
  const [regex, setRegex] = useState(false);
  const [exact, setExact] = useState(true);
  const [found, setFound] = useState<Found>();
  const [at, setAt] = useState(0);
  const running = useRef<AbortController>(undefined);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another log ends the search.
  useEffect(() => {
    setFound(undefined);
    return () => running.current?.abort();
  }, [job, attempt]);

  async function search(from: Found): Promise<void> {
    running.current?.abort();
    const abort = new AbortController();
    running.current = abort;
    let state: Found = { ...from, busy: true, problem: undefined };
    const enough = from.matches.length + LIMIT;
    setFound(state);
    try {
      do {
        const params = {
          path: { job },
          query: {
            text,
            regex,
            ignore_case: !exact,
            attempt,
            start: state.next ?? undefined,
            limit: LIMIT,
          },
        };
        const reply = await answer(
          api.GET("/api/v1/jobs/{job}/log/search", { params, signal: abort.signal }),
        );
        const first = state.matches.length === 0 ? reply.matches[0] : undefined;
        state = {
          ...state,
          matches: [...state.matches, ...reply.matches],
          next: reply.next,
          scanned: state.scanned + reply.scanned,
        };
        setFound(state);
        if (first) {
          setAt(0);
          onFound(first.line);
        }
      } while (state.next !== null && state.matches.length < enough);
      setFound({ ...state, busy: false });
    } catch (error) {
      if (!abort.signal.aborted) setFound({ ...state, busy: false, problem: inWords(error) });
    }
  }

  function onSubmit(event: FormEvent): void {
    event.preventDefault();
    if (text) void search(NOTHING);
  }

  function go(step: number): void {
    const all = found?.matches ?? [];
    const place = (at + step + all.length) % all.length;
    const match = all[place];
    if (!match) return;
    setAt(place);
    onFound(match.line);
  }

  function close(): void {
    running.current?.abort();
    setFound(undefined);
  }

  const matches = found?.matches ?? [];
  return (
    <div className={styles.search}>
      <form className={styles.form} role="search" aria-label="Search the log" onSubmit={onSubmit}>
        <TextField
          label="Search the log"
          hideLabel
          type="search"
          placeholder="Search the log"
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            if (!event.target.value) close();
          }}
        />
        <Checkbox
          label="Regex"
          checked={regex}
          onChange={(event) => setRegex(event.target.checked)}
        />
        <Checkbox
          label="Match case"
          checked={exact}
          onChange={(event) => setExact(event.target.checked)}
        />
        <Button type="submit" small busy={found?.busy} disabled={!text}>
          Find
        </Button>
      </form>
      {found && (
        <div className={styles.found}>
          <p role="status" className={styles.summary}>
            {found.problem ?? summary(found, at)}
            {found.busy && (
              <>
                {" "}
                (<Bytes value={found.scanned} /> of <Bytes value={bytes} />)
              </>
            )}
          </p>
          {matches.length > 0 && (
            <>
              <IconButton icon="up" label="Previous match" small onClick={() => go(-1)} />
              <IconButton icon="down" label="Next match" small onClick={() => go(1)} />
            </>
          )}
          <IconButton icon="close" label="Close the search" small onClick={close} />
        </div>
      )}
      {found && matches.length > 0 && (
        <ol className={styles.list} aria-label="Lines that match">
          {matches.map((match, place) => (
            <li key={match.offset}>
              <button
                type="button"
                className={styles.match}
                aria-current={place === at ? "true" : undefined}
                onClick={() => {
                  setAt(place);
                  onFound(match.line);
                }}
              >
                <span className={styles.line}>{count(match.line)}</span>
                <span className={styles.excerpt}>
                  <AnsiText text={match.before} />
                  <mark className={styles.mark}>{match.match}</mark>
                  <AnsiText text={match.after} />
                </span>
              </button>
            </li>
          ))}
          {found.next !== null && !found.busy && (
            <li>
              <Button small onClick={() => void search(found)}>
                Search on
              </Button>
            </li>
          )}
        </ol>
      )}
    </div>
  );
}

function summary(found: Found, at: number): string {
  const all = found.matches.length;
  if (all === 0) return found.busy ? "Searching" : "Nothing found";
  const more = found.next === null ? "" : " so far";
  return `${count(at + 1)} of ${counted(all, "line")}${more}`;
}
