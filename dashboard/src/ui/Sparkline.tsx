import styles from "./Sparkline.module.css";

interface Props {
  values: readonly (number | null)[];
  /** What the line shows, for screen readers. */
  label: string;
  width?: number;
  height?: number;
}

/** A small line without axes. */
export function Sparkline({ values, label, width = 96, height = 24 }: Props) {
  const known = values.filter((value): value is number => value !== null);
  const most = Math.max(...known, 1e-9);
  const step = values.length > 1 ? (width - 2) / (values.length - 1) : 0;
  let path = "";
  values.forEach((value, place) => {
    if (value === null) return;
    const start = path === "" || values[place - 1] === null;
    const y = height - 1.5 - (value / most) * (height - 3);
    const x = (1 + place * step).toFixed(1);
    path += `${start ? "M" : "L"}${x} ${y.toFixed(1)}`;
    // A line of no length is a dot: a value without neighbours would not be seen.
    const isAlone = start && (values[place + 1] ?? null) === null;
    if (isAlone) path += `L${x} ${y.toFixed(1)}`;
  });
  return (
    <svg
      className={styles.line}
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={label}
    >
      <path d={path} />
    </svg>
  );
}
