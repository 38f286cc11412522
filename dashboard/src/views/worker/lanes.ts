import type { Schemas } from "../../api/client";

export interface Bar {
  key: string;
  job: number | null;
  name: string | null;
  task: string | null;
  state: string;
  from: number;
  to: number;
}

/** Puts attempts that overlap into lanes: each into the first one that is free again. */
export function lanesOf(
  attempts: readonly Schemas["WorkerSpell"][],
  begin: number,
  end: number,
): Bar[][] {
  const lanes: Bar[][] = [];
  const free: number[] = [];
  attempts.forEach((one, number) => {
    const first = one.started_at ?? one.assigned_at;
    const from = Math.max(first ? Date.parse(first) : begin, begin);
    const to = Math.min(one.finished_at ? Date.parse(one.finished_at) : end, end);
    if (to < begin || from > end) return;
    let lane = free.findIndex((until) => until <= from);
    if (lane < 0) {
      lane = lanes.length;
      lanes.push([]);
    }
    free[lane] = to;
    lanes[lane]?.push({
      key: `${one.job ?? "other"} ${one.attempt} ${number}`,
      job: one.job ?? null,
      name: one.name ?? null,
      task: one.task ?? null,
      state: one.state,
      from,
      to,
    });
  });
  return lanes;
}
