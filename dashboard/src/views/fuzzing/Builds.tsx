import type { Schemas } from "../../api/client";
import { Empty } from "../../ui/Empty";
import { PlainTable } from "../../ui/PlainTable";
import { StateBadge } from "../../ui/StateBadge";
import { Time } from "../../ui/Time";
import { Commit, Cut } from "./Commit";

type Status = Schemas["FuzzStatus"];

/** Returns how many commits `Builds` is about. */
export function onTheirWay({ counts }: Status): number {
  return (counts.queue ?? 0) + (counts.built ?? 0) + (counts.failed ?? 0);
}

/** Commits on their way: queued, being built, built, and those whose build failed. */
export function Builds({ status }: { status: Status }) {
  const builders = new Map(
    status.at_work.filter((one) => one.work === "build").map((one) => [one.commit, one]),
  );
  const rows = [
    ...status.queue.map((commit) => ({ commit, state: "queued" })),
    ...status.built.map((commit) => ({ commit, state: "completed" })),
    ...status.failed.map((commit) => ({ commit, state: "failed" })),
  ];
  if (rows.length === 0) return <Empty title="No commit waits for its build" />;
  const all = onTheirWay(status);
  return (
    <>
      <PlainTable
        label="Queue and builds"
        head={["Commit", "State", "Builder, or what shows the log"]}
        rows={rows.map(({ commit, state }) => {
          const builder = builders.get(commit);
          return {
            key: `${state} ${commit}`,
            cells: [
              <Commit key="commit" hash={commit} />,
              <StateBadge
                key="state"
                state={builder ? "running" : state}
                label={builder ? "building" : state === "completed" ? "built" : state}
                plain
              />,
              builder ? (
                <span key="builder">
                  {builder.holder}, until <Time at={builder.until} />, try {builder.tries}
                </span>
              ) : state === "failed" ? (
                <code key="why">{`windlass fuzz builder log ${status.solver} ${commit.slice(0, 12)}`}</code>
              ) : (
                "–"
              ),
            ],
          };
        })}
      />
      <Cut shown={rows.length} of={all} noun="commit" />
    </>
  );
}
