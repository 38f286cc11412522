import type { Schemas } from "../../api/client";
import { count } from "../../ui/format";
import { PoolLink } from "../../ui/links";
import { PlainTable } from "../../ui/PlainTable";
import { Duration } from "../../ui/Time";

/** Work that the same workers and pools can run, and how long it would take. */
export function Targets({ targets }: { targets: readonly Schemas["PlanTarget"][] }) {
  return (
    <PlainTable
      label="Work that waits or runs"
      head={["Jobs", "Queued", "Running", "Slots", "Latency", "Pools that can run it"]}
      numbers={[1, 2, 3, 4]}
      rows={targets.map((target, at) => ({
        key: `${target.jobs} ${at}`,
        cells: [
          target.jobs,
          `${count(target.queued)}${target.more ? "+" : ""}`,
          count(target.running),
          count(target.slots),
          <Duration key="latency" seconds={target.latency_seconds} />,
          target.pools.length > 0
            ? target.pools.map((name, number) => (
                <span key={name}>
                  {number > 0 && ", "}
                  <PoolLink name={name} />
                </span>
              ))
            : target.obstacle || "none",
        ],
      }))}
    />
  );
}
