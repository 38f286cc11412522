import type { CSSProperties } from "react";
import styles from "./AnsiText.module.css";
import { parseAnsi, type Style } from "./ansi";

/** Shows a line of a log with its colours, as text and nothing else. */
export function AnsiText({ text, start }: { text: string; start?: Style }) {
  return parseAnsi(text, start).map((piece, place) => (
    <span
      // biome-ignore lint/suspicious/noArrayIndexKey: pieces have nothing but a place.
      key={place}
      className={classesOf(piece.style)}
      style={colorsOf(piece.style)}
    >
      {piece.text}
    </span>
  ));
}

function classesOf(style: Style): string | undefined {
  const names = [
    typeof style.color === "number" && !style.inverse ? styles[`c${style.color}`] : "",
    typeof style.background === "number" && !style.inverse ? styles[`b${style.background}`] : "",
    style.bold ? styles.bold : "",
    style.dim ? styles.dim : "",
    style.italic ? styles.italic : "",
    style.underline ? styles.underline : "",
    style.strike ? styles.strike : "",
    style.inverse ? styles.inverse : "",
  ];
  return names.filter(Boolean).join(" ") || undefined;
}

function colorsOf(style: Style): CSSProperties | undefined {
  if (style.inverse) return undefined;
  // Programs choose colours for a black terminal: mixed with the text's own, both themes can show them.
  const color =
    typeof style.color === "string"
      ? `color-mix(in srgb, ${style.color} 55%, var(--text))`
      : undefined;
  const backgroundColor = typeof style.background === "string" ? style.background : undefined;
  return color || backgroundColor ? { color, backgroundColor } : undefined;
}
