import { useQuery } from "@tanstack/react-query";
import { answer, api, type Schemas } from "../../api/client";
import { useLiveQueries } from "../../live/useLive";
import { ErrorBox } from "../../ui/ErrorBox";
import { SelectField } from "../../ui/Field";
import { counted, sentence } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import { WorkerLink } from "../../ui/links";
import { Section } from "../../ui/Page";
import { PlainTable } from "../../ui/PlainTable";
import { StateBadge } from "../../ui/StateBadge";
import { Elapsed, Time } from "../../ui/Time";
import styles from "./Pool.module.css";
import { PoolCharts } from "./PoolCharts";
import { poolRoute, RANGES, type Range } from "./route";

type PoolHistory = Schemas["PoolHistory"];
const SHOWN = 50;

/** A pool over time, its reasons, its machines as they came and went, and what happened. */
export function PoolPast({ pool }: { pool: Schemas["PoolInfo"] }) {
  const { range = usualRange(pool.created_at) } = poolRoute.useSearch();
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
      <Section title="Over time" actions={choose}>
        {found.error && <ErrorBox error={found.error} onRetry={() => void found.refetch()} />}
        {!history && !found.error && <Loading />}
        {history && (
          <>
            <PoolCharts history={history} />
            {history.more && (
              <p className={styles.soft}>
                Older events are left out: complete since <Time at={history.complete_from} />.
              </p>
            )}
          </>
        )}
      </Section>
      {history && history.reasons.length > 0 && <Reasons history={history} />}
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

/** Returns the shortest range that shows all of a young pool, or the last day. */
function usualRange(created: string): Range {
  const hours = (Date.now() - Date.parse(created)) / 3_600_000;
  return hours <= 1 ? "1h" : hours <= 6 ? "6h" : "1d";
}

/** Why the pool did what it did, each reason from when on it was given. */
function Reasons({ history }: { history: PoolHistory }) {
  return (
    <Section title="Why">
      <ul className={styles.changes}>
        {history.reasons.slice(0, SHOWN).map((reason) => (
          <li key={reason.at}>
            <Time at={reason.at} /> <span>{sentence(reason.reason)}</span>
          </li>
        ))}
      </ul>
    </Section>
  );
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
