import { useStored } from "../../ui/stored";
import { useNow } from "../../ui/useNow";

/** Until when each entry is silent, in ms, by its key. */
export type Silences = Record<string, number>;

export const SILENCES: readonly { label: string; until: (now: Date) => number }[] = [
  { label: "For an hour", until: (now) => now.getTime() + 3_600_000 },
  { label: "Until tomorrow at 8", until: tomorrow },
  { label: "For a week", until: (now) => now.getTime() + 7 * 86_400_000 },
];

/** Which entries of the attention list this browser leaves out for now. */
export function useSilences() {
  const [silences, set] = useStored<Silences>("silences", {});
  const now = useNow();
  return {
    silent: (key: string) => (silences[key] ?? 0) > now,
    silence: (key: string, until: number) => set(withSilence(silences, key, until, now)),
    clear: () => set({}),
  };
}

/** Returns the silences with another one, without those that are over. */
export function withSilence(silences: Silences, key: string, until: number, now: number): Silences {
  const left = Object.entries(silences).filter(([, end]) => end > now);
  return { ...Object.fromEntries(left), [key]: until };
}

function tomorrow(now: Date): number {
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() + 1, 8).getTime();
}
