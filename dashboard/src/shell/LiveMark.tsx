import { useLiveState } from "../live/useLive";
import { useAsOf } from "./asOf";
import styles from "./LiveMark.module.css";

const WORDS = {
  off: "",
  connecting: "connecting",
  on: "live",
  lost: "not live",
} as const;

const TITLES = {
  off: "",
  connecting: "Connecting to the server",
  on: "The page follows what happens",
  lost: "The connection to the server was lost; trying again",
} as const;

/** Says whether the page follows what happens. */
export function LiveMark() {
  const state = useLiveState();
  const past = useAsOf() !== undefined;
  if (past || state === "off") return null;
  return (
    <span className={styles.mark} data-state={state} title={TITLES[state]}>
      {WORDS[state]}
    </span>
  );
}
