import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useMemo } from "react";
import { answer, api, type Schemas } from "../../api/client";
import { useLiveQueries } from "../../live/useLive";
import { ErrorBox } from "../../ui/ErrorBox";
import { SelectField } from "../../ui/Field";
import { counted } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import { WorkerLink } from "../../ui/links";
import { Card, Section } from "../../ui/Page";
import { PlainTable } from "../../ui/PlainTable";
import { StateBadge } from "../../ui/StateBadge";
import { Elapsed, Time } from "../../ui/Time";
import { settingsOf } from "../pools/settings";
import styles from "./Pool.module.css";
import { poolRoute, RANGES, type Range } from "./route";

const Chart = lazy(() => import("../../ui/Chart"));
type PoolHistory = Schemas["PoolHistory"];
const SHOWN = 50;

/** The size of a pool over time, its machines as they came and went, and what happened. */
export function PoolPast({ pool }: { pool: Schemas["PoolInfo"] }) {
  const { range = "1d" } = poolRoute.useSearch();
  const navigate = poolRoute.useNavigate();
  const found = useQuery({
    queryKey: ["pools", pool.name, "history", range],
    queryFn: ({ signal }) =>
      answer(
        api.GET("/api/v1/pools/{name}/history", {
          signal,
          params: { path: { name: pool.name }, query: { since: range } },
        }),
      ),
    placeholderData: (before) => before,
  });
  useLiveQueries(["pools"], ["pools", pool.name, "history"]);
  const choose = (
    <SelectField
      label="Time"
      hideLabel
      value={range}
      onChange={(event) =>
        void navigate({ search: { range: event.target.value as Range }, replace: true })
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
      <Section title="Size" actions={choose}>
        {found.error && <ErrorBox error={found.error} onRetry={() => void found.refetch()} />}
        {!history && !found.error && <Loading />}
        {history && (
          <Card>
            <Sizes history={history} most={settingsOf(pool).most} />
            {history.more && (
              <p className={styles.soft}>
                Older events are left out: complete since <Time at={history.complete_from} />.
              </p>
            )}
          </Card>
        )}
      </Section>
      {history && history.machines.length > 0 && <Machines history={history} />}
      {history && history.changes.length > 0 && (
        <Section title="What happened">
          <ul className={styles.changes}>
            {history.changes.slice(0, SHOWN).map((change, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: two changes may be equal.
              <li key={`${change.at} ${at}`}>
                <Time at={change.at} /> <span>{change.what}</span>
                {change.actor && <span className={styles.soft}>by {change.actor}</span>}
              </li>
            ))}
          </ul>
        </Section>
      )}
    </>
  );
}

function Sizes({ history, most }: { history: PoolHistory; most: number }) {
  const { times, machines, ready } = useMemo(() => stepsOf(history), [history]);
  const limit = useMemo(() => times.map(() => most), [times, most]);
  const series = useMemo(
    () => [
      { label: "machines", values: machines, tone: "waiting" as const, filled: true },
      { label: "with a worker", values: ready, tone: "good" as const },
      { label: "at most", values: limit, tone: "warn" as const, dashed: true },
    ],
    [machines, ready, limit],
  );
  return (
    <Suspense fallback={<Loading />}>
      <Chart label="Machines of the pool over time" times={times} series={series} format={String} />
    </Suspense>
  );
}

/** Makes stairs of sizes: each holds until the next. */
function stepsOf(history: PoolHistory) {
  const times: number[] = [];
  const machines: number[] = [];
  const ready: number[] = [];
  const add = (at: number, size: PoolHistory["sizes"][number]) => {
    times.push(at);
    machines.push(size.machines);
    ready.push(size.ready);
  };
  let before: PoolHistory["sizes"][number] | undefined;
  for (const size of history.sizes) {
    const at = Date.parse(size.at) / 1000;
    if (before) add(at - 0.001, before);
    add(at, size);
    before = size;
  }
  if (before) add(Date.parse(history.to) / 1000, before);
  return { times, machines, ready };
}

function Machines({ history }: { history: PoolHistory }) {
  const newest = [...history.machines].reverse().slice(0, SHOWN);
  return (
    <Section title={counted(history.machines.length, "machine")}>
      <PlainTable
        label="Machines that came and went"
        head={["Machine", "State", "Requested", "Until it took jobs", "Lived", "Why it went"]}
        rows={newest.map((machine) => ({
          key: machine.name,
          cells: [
            machine.gone_at ? machine.name : <WorkerLink key="name" name={machine.name} />,
            <StateBadge key="state" state={machine.state} plain />,
            machine.requested_at ? <Time key="asked" at={machine.requested_at} /> : "earlier",
            machine.requested_at && machine.ready_at ? (
              <Elapsed key="start" from={machine.requested_at} to={machine.ready_at} />
            ) : (
              "–"
            ),
            <Elapsed key="life" from={machine.requested_at} to={machine.gone_at} />,
            machine.gone_at ? (machine.reason ?? "") : "",
          ],
        }))}
      />
    </Section>
  );
}
