import { Link } from "@tanstack/react-router";
import type { Schemas } from "../../api/client";
import { count } from "../../ui/format";
import { PoolLink } from "../../ui/links";
import { PlainTable, Wrapped } from "../../ui/PlainTable";
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
          <Jobs key="queued" target={target} state="queued" />,
          <Jobs key="running" target={target} state="running" />,
          count(target.slots),
          <Duration key="latency" seconds={target.latency_seconds} />,
          target.pools.length > 0 ? (
            target.pools.map((name, number) => (
              <span key={name}>
                {number > 0 && ", "}
                <PoolLink name={name} />
              </span>
            ))
          ) : (
            <Wrapped key="obstacle">{target.obstacle || "none"}</Wrapped>
          ),
        ],
      }))}
    />
  );
}

/** How many of these jobs wait or run; who may see them gets a link to them. */
function Jobs(props: { target: Schemas["PlanTarget"]; state: "queued" | "running" }) {
  const { target, state } = props;
  const text = `${count(target[state])}${state === "queued" && target.more ? "+" : ""}`;
  const shape = (target.shapes ?? []).map(String);
  if (shape.length === 0) return text;
  return (
    <Link to="/pools" search={{ shape, state }} resetScroll={false}>
      {text}
    </Link>
  );
}
