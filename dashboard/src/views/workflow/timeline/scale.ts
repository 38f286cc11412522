/** A scale of time on which idle times take little room. */
export interface Piece {
  from: number;
  until: number;
  left: number;
  right: number;
  idle: boolean;
}

const GAP_PX = 26;

/** Returns the pieces of a scale from `from` to `until` that is `width` pixels wide. */
export function pieces(
  from: number,
  until: number,
  gaps: readonly { start: number; end: number }[],
  width: number,
): Piece[] {
  const inside = gaps
    .map((gap) => [Math.max(gap.start, from), Math.min(gap.end, until)] as const)
    .filter(([start, end]) => end > start);
  const idle = inside.reduce((sum, [start, end]) => sum + (end - start), 0);
  const room = Math.max(1, width - inside.length * GAP_PX);
  const perMs = room / Math.max(1, until - from - idle);
  const found: Piece[] = [];
  let at = from;
  let left = 0;
  function add(end: number, size: number, isIdle: boolean): void {
    if (end <= at) return;
    found.push({ from: at, until: end, left, right: left + size, idle: isIdle });
    at = end;
    left += size;
  }
  for (const [start, end] of inside) {
    add(start, (start - at) * perMs, false);
    add(end, GAP_PX, true);
  }
  add(until, (until - at) * perMs, false);
  return found;
}

/** Returns where a moment is, in pixels. */
export function toPixels(scale: readonly Piece[], moment: number): number {
  const first = scale[0];
  if (!first) return 0;
  if (moment <= first.from) return first.left;
  const piece = scale.find((one) => moment <= one.until) ?? scale.at(-1) ?? first;
  const share = Math.min(1, (moment - piece.from) / Math.max(1, piece.until - piece.from));
  return piece.left + share * (piece.right - piece.left);
}

/** Returns which moment is at a place. */
export function toMoment(scale: readonly Piece[], x: number): number {
  const piece = scale.find((one) => x <= one.right) ?? scale.at(-1);
  if (!piece) return 0;
  const share = Math.max(0, (x - piece.left) / Math.max(1, piece.right - piece.left));
  return Math.round(piece.from + Math.min(1, share) * (piece.until - piece.from));
}

const STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000,
  300_000, 600_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000,
  86_400_000, 172_800_000, 604_800_000,
];
const TICK_PX = 90;

/** Returns moments for marks, counted from `origin`, none closer than a label is wide. */
export function ticks(scale: readonly Piece[], origin: number): number[] {
  const found: number[] = [];
  let last = Number.NEGATIVE_INFINITY;
  for (const piece of scale) {
    if (piece.idle) continue;
    const perMs = (piece.right - piece.left) / Math.max(1, piece.until - piece.from);
    const step = STEPS.find((one) => one * perMs >= TICK_PX) ?? 604_800_000;
    let moment = origin + Math.ceil((piece.from - origin) / step) * step;
    for (; moment <= piece.until && found.length < 60; moment += step) {
      const x = toPixels(scale, moment);
      if (x - last >= TICK_PX) {
        found.push(moment);
        last = x;
      }
    }
  }
  return found;
}
