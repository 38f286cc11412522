import type { Schemas } from "../../api/client";
import { Empty } from "../../ui/Empty";
import { PlainTable } from "../../ui/PlainTable";
import { Time } from "../../ui/Time";
import { Commit, Cut } from "./Commit";
import styles from "./Fuzzing.module.css";

/** The commits that are fuzzed, how often each was, and by whom now. */
export function Schedule({ status }: { status: Schemas["FuzzStatus"] }) {
  if (status.schedule.length === 0) return <Empty title="No commit is scheduled" />;
  const most = Math.max(1, ...status.schedule.map((one) => one.fuzz_count));
  const holders = new Map(
    status.at_work.filter((one) => one.work === "fuzz").map((one) => [one.commit, one]),
  );
  return (
    <>
      <PlainTable
        label="Schedule"
        head={["Commit", "Runs", "", "Now"]}
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
            ],
          };
        })}
      />
      <Cut shown={status.schedule.length} of={status.counts.schedule ?? 0} noun="commit" />
    </>
  );
}
