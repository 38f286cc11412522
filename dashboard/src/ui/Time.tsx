import { useAsOf } from "../shell/asOf";
import { duration, exact, relative } from "./format";
import { useNow } from "./useNow";

/** Shows how long ago a time was; its title is the exact time. */
export function Time({ at }: { at: string | null | undefined }) {
  const now = useNow();
  if (!at) return <span>–</span>;
  const ms = Date.parse(at);
  return (
    <time dateTime={at} title={exact(ms)}>
      {relative(ms, now)}
    </time>
  );
}

/** Shows a duration in seconds. */
export function Duration({ seconds }: { seconds: number | null | undefined }) {
  if (seconds === null || seconds === undefined) return <span>–</span>;
  return <span title={`${seconds} s`}>{duration(seconds)}</span>;
}

/** Shows how long something took, or takes until now. */
export function Elapsed({ from, to }: { from: string | null; to?: string | null }) {
  if (!from) return <span>–</span>;
  if (!to) return <Running from={Date.parse(from)} />;
  return <Duration seconds={(Date.parse(to) - Date.parse(from)) / 1000} />;
}

function Running({ from }: { from: number }) {
  const asOf = useAsOf();
  const present = useNow();
  const now = asOf === undefined ? present : Date.parse(asOf) || present;
  return <span>{duration(Math.floor(Math.max(0, now - from) / 1000))}</span>;
}
