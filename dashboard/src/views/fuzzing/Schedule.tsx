import type { Schemas } from "../../api/client";
import { Empty } from "../../ui/Empty";
import { duration } from "../../ui/format";
import { PlainTable } from "../../ui/PlainTable";
import { Time } from "../../ui/Time";
import { Commit, Cut } from "./Commit";
import styles from "./Fuzzing.module.css";

type Status = Schemas["FuzzStatus"];

/** The commits that are fuzzed, how often each was, and by whom now. Before them the branches, if
 * there are several, and behind them what the next run gives to the combinations of a matrix. */
export function Schedule({ status }: { status: Status }) {
  return (
    <>
      {(status.branches ?? []).length > 0 && <Branches status={status} />}
      {status.schedule.length === 0 ? (
        <Empty title="No commit is scheduled" />
      ) : (
        <Commits status={status} />
      )}
      {(status.shares ?? []).length > 0 && <Shares status={status} />}
    </>
  );
}

function Branches({ status }: { status: Status }) {
  return (
    <PlainTable
      label="Branches"
      head={["Branch", "State", "Scheduled", "Last commit", "Checked"]}
      numbers={[2]}
      rows={(status.branches ?? []).map((one) => ({
        key: one.name,
        cells: [
          one.name,
          one.state,
          one.scheduled,
          <Commit key="commit" hash={one.last_checked_commit} />,
          one.checked_at ? <Time key="time" at={one.checked_at} /> : "never",
        ],
      }))}
    />
  );
}

function Shares({ status }: { status: Status }) {
  return (
    <div className={styles.report}>
      <h3>How the next run divides its time</h3>
      <PlainTable
        label="How the next run divides its time"
        head={["Combination", "Time", "Share", "Why"]}
        numbers={[1, 2]}
        rows={(status.shares ?? []).map((one) => ({
          key: one.combination,
          cells: [
            one.combination,
            one.seconds > 0 ? duration(one.seconds) : "none",
            `${one.percent} %`,
            one.why,
          ],
        }))}
      />
    </div>
  );
}

function Commits({ status }: { status: Status }) {
  const several = (status.branches ?? []).length > 0;
  const most = Math.max(1, ...status.schedule.map((one) => one.fuzz_count));
  const holders = new Map(
    status.at_work.filter((one) => one.work === "fuzz").map((one) => [one.commit, one]),
  );
  return (
    <>
      <PlainTable
        label="Schedule"
        head={["Commit", "Runs", "", "Now", ...(several ? ["Branches"] : [])]}
        numbers={[1]}
        rows={status.schedule.map((one) => {
          const holder = holders.get(one.commit);
          return {
            key: one.commit,
            cells: [
              <Commit key="commit" hash={one.commit} />,
              one.fuzz_count,
              <span key="bar" className={styles.meter} aria-hidden="true">
                <span style={{ width: `${(one.fuzz_count / most) * 100}%` }} />
              </span>,
              holder ? (
                <span key="holder">
                  fuzzed by {holder.holder}, until <Time at={holder.until} />
                </span>
              ) : (
                "–"
              ),
              ...(several ? [(one.branches ?? []).join(", ")] : []),
            ],
          };
        })}
      />
      <Cut shown={status.schedule.length} of={status.counts.schedule ?? 0} noun="commit" />
    </>
  );
}
