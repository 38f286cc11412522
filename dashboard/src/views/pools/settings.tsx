import type { Schemas } from "../../api/client";

export interface PoolSettings {
  provider: string;
  least: number;
  most: number;
  targetSeconds: number | null;
  /** What a month may take in all, in seconds of machines; 0 means any amount. */
  budgetSeconds: number;
  hourlyPrice: number;
  enabled: boolean;
}

/** Returns what a pool's description says, as far as pages show it. */
export function settingsOf(pool: Schemas["PoolInfo"]): PoolSettings {
  const given = pool.description as Record<string, unknown>;
  return {
    provider: typeof given.provider === "string" ? given.provider : "",
    least: number(given.min_workers) ?? 0,
    most: number(given.max_workers) ?? 0,
    targetSeconds: number(given.target_latency_seconds),
    budgetSeconds: number(given.max_seconds_per_month) ?? 0,
    hourlyPrice: number(given.hourly_price) ?? 0,
    enabled: given.enabled !== false,
  };
}

function number(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}

const AMOUNT = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const SMALL = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });

/** Writes an amount of money, in the currency in which prices are given. */
export function money(value: number): string {
  return (value < 0.1 && value > 0 ? SMALL : AMOUNT).format(value);
}

export function Money({ value }: { value: number }) {
  return <span>{money(value)}</span>;
}
