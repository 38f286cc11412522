import { useLiveState } from "../live/useLive";
import { useAsOf } from "./asOf";
import styles from "./LiveMark.module.css";

const WORDS = {
  off: "",
  connecting: "connecting",
  on: "live",
  lost: "not live",
  slow: "every 5 s",
} as const;

const TITLES = {
  off: "",
  connecting: "Connecting to the server",
  on: "The page follows what happens",
  lost: "The connection to the server was lost; trying again",
  slow: "Other windows of this browser are live; this one asks every five seconds",
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
