import { useNavigate, useSearch } from "@tanstack/react-router";

const UNITS_MS: Record<string, number> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Returns the moment that the page shows (`as_of=` in its address); undefined: now. */
export function useAsOf(): string | undefined {
  const search: { as_of?: string } = useSearch({ strict: false });
  return search.as_of;
}

const fixed = new Map<string, string>();

/**
 * Returns the time that `as_of=` means if it says how long ago ("2h"), otherwise the same text. It
 * is that of the first look: it does not move while somebody looks.
 */
export function fixedMoment(text: string): string {
  const before = fixed.get(text);
  if (before !== undefined) return before;
  const [, amount, unit = ""] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text) ?? [];
  const ms = UNITS_MS[unit];
  if (ms === undefined) return text;
  const moment = new Date(Date.now() - Number(amount) * ms).toISOString();
  fixed.set(text, moment);
  return moment;
}

/** Returns a function that moves the page to a moment, or back to now. */
export function useSetAsOf(): (moment: string | undefined) => void {
  const navigate = useNavigate();
  return (moment) => {
    void navigate({
      to: ".",
      search: (before: Record<string, unknown>) => ({ ...before, as_of: moment }),
      replace: true,
    } as never);
  };
}
