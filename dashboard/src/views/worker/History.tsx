import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api, type Schemas } from "../../api/client";
import { useLiveQueries } from "../../live/useLive";
import { Button } from "../../ui/Button";
import { Empty } from "../../ui/Empty";
import { ErrorBox } from "../../ui/ErrorBox";
import { SelectField } from "../../ui/Field";
import { counted, sentence } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import { JobLink } from "../../ui/links";
import { Section } from "../../ui/Page";
import { PlainTable } from "../../ui/PlainTable";
import { StateBadge } from "../../ui/StateBadge";
import { Elapsed, Time } from "../../ui/Time";
import { Gantt } from "./Gantt";
import { RANGES, type Range, workerRoute } from "./route";
import styles from "./Worker.module.css";

type WorkerHistory = Schemas["WorkerHistory"];
const LIVE = new Set(["assigned", "running", "canceling", "timed_out"]);
const SHOWN_CHANGES = 20;
const LISTED = 200;

/** The jobs it runs now, those it ran, and what happened to it. */
export function History({ worker }: { worker: Schemas["WorkerInfo"] }) {
  const { range = "1h" } = workerRoute.useSearch();
  const navigate = workerRoute.useNavigate();
  const found = useQuery({
    queryKey: ["worker", worker.name, "history", range],
    queryFn: ({ signal }) =>
      answer(
        api.GET("/api/v1/workers/{worker}/history", {
          signal,
          params: { path: { worker: worker.id }, query: { since: range } },
        }),
      ),
    placeholderData: (before) => before,
  });
  useLiveQueries(["workers", "jobs"], ["worker", worker.name, "history"]);
  const choose = (
    <SelectField
      label="Time"
      hideLabel
      value={range}
      onChange={(event) =>
        void navigate({
          search: (before) => ({ ...before, range: event.target.value as Range }),
          replace: true,
        })
      }
    >
      {RANGES.map((one) => (
        <option key={one} value={one}>
          last {one}
        </option>
      ))}
    </SelectField>
  );
  const history = found.data;
  return (
    <>
      <Section title="Jobs now">
        {history ? <Now history={history} /> : found.error ? null : <Loading />}
      </Section>
      <Section title="History" actions={choose}>
        {found.error && <ErrorBox error={found.error} onRetry={() => void found.refetch()} />}
        {history && <Past history={history} enrolled={worker.enrolled_at} />}
      </Section>
      {history && history.changes.length > 0 && (
        <Section title="What happened to it">
          <ul className={styles.changes}>
            {withoutRepeats(history.changes)
              .slice(0, SHOWN_CHANGES)
              .map(({ change, times }) => (
                <li key={`${change.at} ${change.what}`}>
                  <Time at={change.at} /> <span>{sentence(change.what)}</span>
                  {change.actor && <span className={styles.soft}>by {change.actor}</span>}
                  {times > 1 && <span className={styles.soft}>{times} times</span>}
                </li>
              ))}
          </ul>
        </Section>
      )}
    </>
  );
}

type Change = WorkerHistory["changes"][number];

/** Returns each change with how often it was told in a row, by its newest time. */
function withoutRepeats(changes: readonly Change[]): { change: Change; times: number }[] {
  const told: { change: Change; times: number }[] = [];
  for (const change of changes) {
    const last = told.at(-1);
    if (last?.change.what === change.what && last.change.actor === change.actor) last.times += 1;
    else told.push({ change, times: 1 });
  }
  return told;
}

function Now({ history }: { history: WorkerHistory }) {
  const held = history.attempts.filter((one) => LIVE.has(one.state) && !one.finished_at);
  if (held.length === 0) return <p className={styles.soft}>It runs no job.</p>;
  return (
    <ul className={styles.now}>
      {held.map((one, at) => (
        <li key={one.job ?? `other ${at}`}>
          <StateBadge state={one.state} />
          {one.job ? (
            <JobLink id={one.job}>job {one.job}</JobLink>
          ) : (
            <span>a job of another namespace</span>
          )}
          {one.name && <span>{one.name}</span>}
          <span className={styles.soft}>{one.task}</span>
          <span className={styles.soft}>
            for <Elapsed from={one.started_at ?? one.assigned_at} />
          </span>
        </li>
      ))}
    </ul>
  );
}

function Past({ history, enrolled }: { history: WorkerHistory; enrolled: string }) {
  if (history.attempts.length === 0)
    return (
      <Empty title="It ran nothing in this time">
        <p>Choose a longer time above.</p>
      </Empty>
    );
  return (
    <>
      <Gantt history={history} enrolled={enrolled} />
      <AttemptList attempts={history.attempts} />
      {history.more && (
        <p className={styles.soft}>
          Older ones are left out: complete since <Time at={history.complete_from} />.
        </p>
      )}
    </>
  );
}

/** The attempts behind the drawing; their number opens the list. */
function AttemptList({ attempts }: { attempts: WorkerHistory["attempts"] }) {
  const [open, setOpen] = useState(false);
  const newest = [...attempts].reverse().slice(0, LISTED);
  return (
    <>
      <div>
        <Button
          kind="quiet"
          small
          icon={open ? "down" : "right"}
          aria-expanded={open}
          onClick={() => setOpen(!open)}
        >
          {counted(attempts.length, "attempt")}
        </Button>
      </div>
      {open && (
        <PlainTable
          label="Attempts on this worker, newest first"
          head={["Job", "Name", "Task", "Attempt", "State", "Started", "Took", "Reason"]}
          numbers={[3, 6]}
          rows={newest.map((one, at) => ({
            key: `${one.job ?? at} ${one.attempt}`,
            cells: [
              one.job ? <JobLink key="job" id={one.job} /> : "of another namespace",
              one.name ?? "–",
              one.task ?? "–",
              one.attempt,
              <StateBadge key="state" state={one.state} plain />,
              <Time key="started" at={one.started_at ?? one.assigned_at} />,
              <Elapsed key="took" from={one.started_at ?? one.assigned_at} to={one.finished_at} />,
              one.reason ?? "",
            ],
          }))}
        />
      )}
      {open && attempts.length > LISTED && (
        <p className={styles.soft}>These are the newest {LISTED}.</p>
      )}
    </>
  );
}
