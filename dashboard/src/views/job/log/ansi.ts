/**
 * Colours in the output of programs: text with ANSI escape sequences becomes pieces of plain text
 * with styles. Nothing of a log is ever read as HTML; other sequences are left out.
 */
export interface Style {
  /** One of the 16 named colours, or any other as rgb(…). */
  color?: number | string;
  background?: number | string;
  bold?: boolean;
  dim?: boolean;
  italic?: boolean;
  underline?: boolean;
  strike?: boolean;
  inverse?: boolean;
}

export interface Piece {
  text: string;
  style: Style;
}

const ESC = String.fromCharCode(27);
const BELL = String.fromCharCode(7);
// CSI sequences, OSC sequences (titles, links) and other short ones.
const SEQUENCE = new RegExp(
  `${ESC}(?:\\[([0-9;:?<=>]*)[ -/]*([@-~])|\\][^${BELL}${ESC}]*(?:${BELL}|${ESC}\\\\|$)|[@-Z\\\\^_=>()][0-9A-B]?)`,
  "g",
);
const CONTROL = /\p{Cc}/gu;
// Characters that change the order of those around them: what is shown would not be what is there.
const REORDERING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const LEVELS = [0, 95, 135, 175, 215, 255] as const;

/** Returns the style after a text. */
export function styleAfter(text: string, start: Style): Style {
  if (!text.includes(ESC)) return start;
  let style = start;
  for (const match of text.matchAll(SEQUENCE)) {
    if (match[2] === "m") style = styled(style, match[1] ?? "");
  }
  return style;
}

/** Returns the pieces of a line that begins with a style. */
export function parseAnsi(line: string, start: Style = {}): Piece[] {
  const text = overwritten(line);
  const pieces: Piece[] = [];
  let style = start;
  let at = 0;
  for (const match of text.matchAll(SEQUENCE)) {
    add(pieces, text.slice(at, match.index), style);
    at = match.index + match[0].length;
    if (match[2] === "m") style = styled(style, match[1] ?? "");
  }
  add(pieces, text.slice(at), style);
  return pieces;
}

/** Returns what is left on the line of a terminal: a carriage return begins it again. */
function overwritten(line: string): string {
  if (!line.includes("\r")) return line;
  const parts = line.split("\r").filter((part) => part !== "");
  return parts[parts.length - 1] ?? "";
}

function add(pieces: Piece[], text: string, style: Style): void {
  const shown = text
    .replace(CONTROL, (one) => (one === "\t" ? one : ""))
    .replace(REORDERING, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
  if (shown) pieces.push({ text: shown, style });
}

function styled(before: Style, codes: string): Style {
  const numbers = (codes || "0").split(/[;:]/).map((code) => Number(code || "0"));
  let style = { ...before };
  for (let at = 0; at < numbers.length; at += 1) {
    const code = numbers[at] ?? 0;
    if (code === 0) style = {};
    else if (code === 38 || code === 48) {
      const [color, used] = extended(numbers, at + 1);
      at += used;
      if (color !== undefined) style[code === 38 ? "color" : "background"] = color;
    } else simple(style, code);
  }
  return style;
}

function simple(style: Style, code: number): void {
  if (code === 1) style.bold = true;
  else if (code === 2) style.dim = true;
  else if (code === 3) style.italic = true;
  else if (code === 4) style.underline = true;
  else if (code === 7) style.inverse = true;
  else if (code === 9) style.strike = true;
  else if (code === 22) {
    style.bold = false;
    style.dim = false;
  } else if (code === 23) style.italic = false;
  else if (code === 24) style.underline = false;
  else if (code === 27) style.inverse = false;
  else if (code === 29) style.strike = false;
  else if (code >= 30 && code <= 37) style.color = code - 30;
  else if (code === 39) style.color = undefined;
  else if (code >= 40 && code <= 47) style.background = code - 40;
  else if (code === 49) style.background = undefined;
  else if (code >= 90 && code <= 97) style.color = code - 82;
  else if (code >= 100 && code <= 107) style.background = code - 92;
}

/** Returns a colour of 256 or of all, and how many numbers it takes. */
function extended(numbers: number[], at: number): [number | string | undefined, number] {
  if (numbers[at] === 5) {
    const index = numbers[at + 1] ?? 0;
    return [paletteColor(index), 2];
  }
  if (numbers[at] === 2) {
    const parts = [1, 2, 3].map((step) => clamp(numbers[at + step] ?? 0));
    return [`rgb(${parts.join(" ")})`, 4];
  }
  return [undefined, 1];
}

function paletteColor(index: number): number | string | undefined {
  if (index < 0 || index > 255) return undefined;
  if (index < 16) return index;
  if (index >= 232) {
    const grey = 8 + (index - 232) * 10;
    return `rgb(${grey} ${grey} ${grey})`;
  }
  const cube = index - 16;
  const parts = [Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6];
  return `rgb(${parts.map((part) => LEVELS[part] ?? 0).join(" ")})`;
}

function clamp(value: number): number {
  return Math.min(255, Math.max(0, Math.trunc(value)));
}
