import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import type { Schemas } from "../../api/client";
import { counted, duration, exact } from "../../ui/format";
import { lookOf } from "../../ui/states";
import { lanesOf } from "./lanes";
import styles from "./Worker.module.css";

const MAX_LANES = 40;
const TICKS = 6;

/** Attempts over time, one lane for each slot that was needed at the same time. */
export function Gantt(props: { history: Schemas["WorkerHistory"]; enrolled: string }) {
  const { history, enrolled } = props;
  // It ran nothing before it was there: the time since then gets all the room.
  const begin = Math.max(Date.parse(history.from), Date.parse(enrolled));
  const end = Date.parse(history.to);
  const lanes = useMemo(
    () => lanesOf(history.attempts, begin, end).slice(0, MAX_LANES),
    [history.attempts, begin, end],
  );
  const share = (at: number) => ((at - begin) / (end - begin)) * 100;
  const ticks = Array.from({ length: TICKS + 1 }, (_, n) => begin + ((end - begin) * n) / TICKS);
  return (
    <div className={styles.gantt}>
      <fieldset className={styles.lanes} aria-label={labelOf(history)}>
        {lanes.map((lane, number) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: lanes have no identity but their place.
          <div className={styles.lane} key={number}>
            {lane.map((bar) => {
              const place = {
                left: `${share(bar.from)}%`,
                // A gap to the next one, as long as something is left of it.
                width: `max(2px, calc(${share(bar.to) - share(bar.from)}% - 1px))`,
              };
              const title = `${bar.job ? `job ${bar.job}` : "another namespace's job"}, ${bar.name ?? bar.task ?? ""} ${lookOf(bar.state).label}, ${exact(bar.from)}, ${duration((bar.to - bar.from) / 1000)}`;
              const common = { className: styles.bar, "data-tone": lookOf(bar.state).tone, title };
              return bar.job ? (
                <Link
                  key={bar.key}
                  to="/jobs/$job"
                  params={{ job: String(bar.job) }}
                  style={place}
                  tabIndex={-1}
                  aria-label={title}
                  {...common}
                />
              ) : (
                <span key={bar.key} style={place} {...common} />
              );
            })}
          </div>
        ))}
      </fieldset>
      <div className={styles.ticks} aria-hidden="true">
        {ticks.map((at) => (
          <span key={at}>{clock(at, end - begin)}</span>
        ))}
      </div>
      <ul className={styles.legend} aria-label="Colours">
        {legendOf(history).map(({ tone, words }) => (
          <li key={tone}>
            <span className={styles.swatch} data-tone={tone} aria-hidden="true" />
            {words}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** What the colours of the bars mean, as far as there are such bars. */
function legendOf(history: Schemas["WorkerHistory"]): { tone: string; words: string }[] {
  const labels = new Map<string, Set<string>>();
  for (const { state } of history.attempts) {
    const { tone, label } = lookOf(state);
    labels.set(tone, (labels.get(tone) ?? new Set()).add(label));
  }
  return Array.from(labels, ([tone, all]) => ({ tone, words: [...all].join(", ") }));
}

function labelOf(history: Schemas["WorkerHistory"]): string {
  return `${counted(history.attempts.length, "attempt")} between ${history.from} and ${history.to}`;
}

function clock(at: number, span: number): string {
  const day = span > 36 * 3_600_000;
  const format = day
    ? ({ month: "short", day: "numeric", hour: "2-digit" } as const)
    : span < TICKS * 120_000
      ? ({ hour: "2-digit", minute: "2-digit", second: "2-digit" } as const)
      : ({ hour: "2-digit", minute: "2-digit" } as const);
  return new Intl.DateTimeFormat(undefined, format).format(at);
}
