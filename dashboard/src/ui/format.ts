/** Numbers, times and sizes in words; one place, so that all views say the same. */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/**
 * Returns a duration in seconds as people say it: 250 ms, 4.1 s, 3 min 20 s, 2 h 5 min. The command line writes the
 * same (`readable_duration`).
 */
export function duration(seconds: number): string {
  const ms = Math.round(Math.abs(seconds) * 1000);
  const sign = seconds < 0 && ms ? "−" : "";
  if (ms === 0) return "0 s";
  if (ms < SECOND) return `${sign}${ms} ms`;
  if (ms < 9_950) return `${sign}${Math.round(ms / 100) / 10} s`;
  if (ms < MINUTE - SECOND / 2) return `${sign}${Math.round(ms / SECOND)} s`;
  if (ms < HOUR - SECOND / 2) return sign + two(Math.round(ms / SECOND), 60, "min", "s");
  if (ms < DAY - MINUTE / 2) return sign + two(Math.round(ms / MINUTE), 60, "h", "min");
  return sign + two(Math.round(ms / HOUR), 24, "d", "h");
}

function two(amount: number, inBig: number, big: string, small: string): string {
  const rest = amount % inBig;
  const whole = `${Math.floor(amount / inBig)} ${big}`;
  return rest ? `${whole} ${rest} ${small}` : whole;
}

/** Returns how long ago a time was, or in how long it will be. */
export function relative(ms: number, now: number): string {
  const past = now - ms;
  if (Math.abs(past) < 5 * SECOND) return "just now";
  const words = rough(Math.abs(past));
  return past > 0 ? `${words} ago` : `in ${words}`;
}

function rough(ms: number): string {
  if (ms < MINUTE) return `${Math.round(ms / SECOND)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  if (ms < 2 * DAY) return `${Math.floor(ms / HOUR)} h`;
  return `${Math.floor(ms / DAY)} d`;
}

// Making one takes longer than rendering a row of a table.
const EXACT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });

/** Returns a time exactly, in the zone of the person, with its offset. */
export function exact(ms: number): string {
  return EXACT.format(ms);
}

const CLOCK = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 3,
  hourCycle: "h23",
});

const DAY_OF = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });

/** Returns the day of a time in the zone of the person. */
export function day(ms: number): string {
  return DAY_OF.format(ms);
}

/** Returns the time of day in the zone of the person: 14:03:07.250. */
export function clock(ms: number): string {
  return CLOCK.format(ms);
}

/** Returns a time of the API exactly; another text, such as one typed into the address, as it is. */
export function moment(text: string): string {
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? text : exact(ms);
}

/** Returns a time as fields of browsers want it: in the zone of the person, without its offset. */
export function localTime(text: string | undefined): string {
  const at = text === undefined ? new Date() : new Date(text);
  if (Number.isNaN(at.getTime())) return "";
  const shifted = new Date(at.getTime() - at.getTimezoneOffset() * MINUTE);
  return shifted.toISOString().slice(0, 19);
}

const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;

/** Returns a size: 512 B, 8.5 KiB, 11.1 MiB, 250 GiB, 8 TiB. The command line writes the same (`readable_size`). */
export function bytes(count: number): string {
  let value = Math.abs(count);
  let unit = 0;
  // What rounds to 1,024 of a unit is 1 of the next.
  while (Math.round(value) >= 1024 && unit < BYTE_UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const tenths = Math.round(value * 10);
  const shown = tenths < 1_000 ? tenths / 10 : Math.round(value);
  return `${count < 0 ? "−" : ""}${shown} ${BYTE_UNITS[unit] ?? ""}`;
}

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** Returns 1,234,567. */
export function count(value: number): string {
  return WHOLE.format(value);
}

/** Returns 1.2M, for places with little room. */
export function shortCount(value: number): string {
  return SHORT.format(value);
}

/** Returns a text of the server as a sentence begins. */
export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Returns "1 job" or "12 jobs". */
export function counted(value: number, noun: string, plural = `${noun}s`): string {
  return `${count(value)} ${value === 1 ? noun : plural}`;
}
