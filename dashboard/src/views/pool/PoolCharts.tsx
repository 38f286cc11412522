import { lazy, useMemo } from "react";
import type { Schemas } from "../../api/client";
import type { Series } from "../../ui/Chart";
import { ChartCard, ChartGrid } from "../../ui/ChartCard";
import { duration } from "../../ui/format";
import { money } from "../pools/settings";

const Chart = lazy(() => import("../../ui/Chart"));
type PoolHistory = Schemas["PoolHistory"];
type Size = PoolHistory["sizes"][number];
type Values = (number | null)[];

/** A pool over time: its size against what it wanted, its latency against its target, its costs. */
export function PoolCharts({ history: whole }: { history: PoolHistory }) {
  const history = useMemo(() => sinceItsBeginning(whole), [whole]);
  const figures = history.figures;
  const sizes = useMemo(() => sizesOf(history), [history]);
  const has = (values: Values) => values.some((value) => value);
  const chart = (label: string, series: Series[], format?: (value: number) => string) => (
    <ChartCard label={label}>
      <Chart label={label} times={figures.times} series={series} format={format} />
    </ChartCard>
  );
  return (
    <ChartGrid>
      <ChartCard label="Machines">
        <Chart label="Machines" format={String} times={sizes.times} series={sizes.series} />
      </ChartCard>
      {chart(
        "Latency against its target",
        [
          { label: "expected", values: figures.latency_seconds, tone: "active" },
          { label: "target", values: figures.target_seconds, tone: "warn", dashed: true },
        ],
        duration,
      )}
      {chart(
        "Machine time this month",
        [
          { label: "used", values: figures.used_seconds, tone: "active", filled: true },
          ...(has(figures.budget_seconds)
            ? [
                {
                  label: "budget",
                  values: figures.budget_seconds,
                  tone: "bad" as const,
                  dashed: true,
                },
              ]
            : []),
        ],
        duration,
      )}
      {has(figures.used_money) &&
        chart(
          "Cost this month",
          [{ label: "cost", values: figures.used_money, tone: "active", filled: true }],
          money,
        )}
      {(has(figures.started) || has(figures.ended)) &&
        chart(
          "Machines that came and went",
          [
            { label: "requested", values: figures.started, tone: "good" },
            { label: "gone", values: figures.ended, tone: "waiting", dashed: true },
          ],
          String,
        )}
    </ChartGrid>
  );
}

/** Leaves out the slots before the pool was there: the time since then gets all the room. */
function sinceItsBeginning(history: PoolHistory): PoolHistory {
  const { figures, sizes } = history;
  const first = figures.most.findIndex((value) => value !== null);
  const start = figures.times[first];
  if (first <= 0 || start === undefined) return history;
  const before = sizes.filter(({ at }) => Date.parse(at) / 1000 < start);
  const held = before.at(-1);
  const cut = Object.fromEntries(
    Object.entries(figures).map(([name, values]) => [
      name,
      Array.isArray(values) ? values.slice(first) : values,
    ]),
  ) as PoolHistory["figures"];
  return {
    ...history,
    figures: cut,
    sizes: [
      ...(held ? [{ ...held, at: new Date(start * 1000).toISOString() }] : []),
      ...sizes.slice(before.length),
    ],
  };
}

/** Sizes are exact and hold until the next one; what the pool wanted is known by the slot. */
function sizesOf({ sizes, figures, to }: PoolHistory): { times: number[]; series: Series[] } {
  const seconds = (text: string) => Date.parse(text) / 1000;
  const changes = sizes.map((size) => ({ at: seconds(size.at), size }));
  const slots = figures.times.filter((at) => at >= (changes[0]?.at ?? at));
  const stairs = changes.flatMap(({ at }) => [at - 0.001, at]).slice(1);
  const times = [...new Set([...stairs, ...slots, seconds(to)])].sort((a, b) => a - b);
  const machines: Values = [];
  const ready: Values = [];
  const wanted: Values = [];
  const most: Values = [];
  let next = 0;
  let slot = -1;
  let size: Size | undefined;
  for (const at of times) {
    for (let change = changes[next]; change && change.at <= at; change = changes[next]) {
      size = change.size;
      next += 1;
    }
    while (slot + 1 < figures.times.length && (figures.times[slot + 1] ?? 0) <= at) slot += 1;
    machines.push(size?.machines ?? null);
    ready.push(size?.ready ?? null);
    wanted.push(figures.wanted[slot] ?? null);
    most.push(figures.most[slot] ?? null);
  }
  return {
    times,
    series: [
      { label: "machines", values: machines, tone: "waiting", filled: true },
      { label: "with a worker", values: ready, tone: "good" },
      { label: "wanted", values: wanted, tone: "active", dashed: true },
      { label: "at most", values: most, tone: "warn", dashed: true },
    ],
  };
}
