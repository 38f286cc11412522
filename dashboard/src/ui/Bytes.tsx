import { bytes, count } from "./format";

/** Shows a size; its title is the exact number. */
export function Bytes({ value }: { value: number | null | undefined }) {
  if (value === null || value === undefined) return <span>–</span>;
  return <span title={`${count(value)} bytes`}>{bytes(value)}</span>;
}
