import { useCallback, useEffect, useRef, useState } from "react";
import { answer, api, type Schemas } from "../../../api/client";
import { untilHidden, untilVisible } from "../../../live/visible";
import { type Style, styleAfter } from "./ansi";

/** A line, and the style that those before it leave. */
export type LogLine = Schemas["LogLine"] & { style: Style };

const PAGE = 400; // lines of one request
const KEPT = 20_000; // lines in memory
const WAIT_S = 20;
const PAUSE_MS = 2_000; // after a failed request

export interface LogStatus {
  total: number;
  bytes: number;
  state: string;
  attempt: number;
  isOver: boolean;
}

export interface Log {
  status: LogStatus | undefined;
  error: unknown;
  line: (number: number) => LogLine | undefined;
  /** Asks for lines that are not there yet. */
  ensure: (first: number, last: number) => void;
}

/** Reads the log of a job in pages, and follows it while it grows. */
export function useLog(job: number, attempt: number | undefined): Log {
  const [status, setStatus] = useState<LogStatus>();
  const [error, setError] = useState<unknown>();
  const [, setVersion] = useState(0);
  const lines = useRef(new Map<number, LogLine>());
  const asked = useRef(new Set<number>());

  const read = useCallback(
    async (query: { line?: number; wait?: number; beyond?: number }, signal: AbortSignal) => {
      const params = { path: { job }, query: { attempt, count: PAGE, ...query } };
      const page = await answer(api.GET("/api/v1/jobs/{job}/log/lines", { params, signal }));
      if (lines.current.size > KEPT) lines.current.clear();
      for (const line of coloured(page)) lines.current.set(line.number, line);
      setStatus({
        total: page.total,
        bytes: page.bytes,
        state: page.state,
        attempt: page.attempt,
        isOver: page.is_over,
      });
      setVersion((version) => version + 1);
      setError(undefined);
      return page;
    },
    [job, attempt],
  );

  useEffect(() => {
    const abort = new AbortController();
    lines.current = new Map();
    asked.current = new Set();
    setStatus(undefined);
    async function follow(): Promise<void> {
      let beyond: number | undefined;
      while (!abort.signal.aborted) {
        const waiting = untilHidden(abort.signal);
        try {
          const wait = beyond === undefined ? undefined : { wait: WAIT_S, beyond };
          const page = await read({ ...wait }, waiting.signal);
          if (page.is_over) return;
          if (beyond === page.bytes) await pause(abort.signal);
          beyond = page.bytes;
        } catch (problem) {
          if (abort.signal.aborted) return;
          if (!waiting.signal.aborted) {
            setError(problem);
            await pause(abort.signal);
          }
        } finally {
          waiting.forget();
        }
        await untilVisible(abort.signal);
      }
    }
    void follow();
    return () => abort.abort();
  }, [read]);

  const ensure = useCallback(
    (first: number, last: number) => {
      let missing = first;
      while (missing <= last && lines.current.has(missing)) missing += 1;
      if (missing > last) return;
      const start = Math.max(1, missing - (missing === first ? Math.floor(PAGE / 4) : 0));
      if (asked.current.has(start)) return;
      asked.current.add(start);
      read({ line: start }, new AbortController().signal)
        .catch(setError)
        .finally(() => asked.current.delete(start));
    },
    [read],
  );

  const line = useCallback((number: number) => lines.current.get(number), []);
  return { status, error, line, ensure };
}

/** Returns the lines of a page with the style that each begins with. */
function coloured(page: Schemas["LogLines"]): LogLine[] {
  let style = styleAfter(page.colours, {});
  return page.lines.map((line) => {
    const before = style;
    style = styleAfter(line.text, style);
    return { ...line, style: before };
  });
}

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, PAUSE_MS);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
