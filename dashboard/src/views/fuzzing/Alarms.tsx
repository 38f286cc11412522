import type { Schemas } from "../../api/client";
import { counted } from "../../ui/format";
import { Time } from "../../ui/Time";
import { Commit } from "./Commit";
import styles from "./Fuzzing.module.css";

/** What somebody has to look at: commits that cannot be fuzzed, alarms about them that did not
 * arrive, and inputs that wait for triage. */
export function Alarms({ status }: { status: Schemas["FuzzStatus"] }) {
  const alarms = status.unhealthy ?? [];
  const lost = status.lost_alarms ?? [];
  const waiting = status.untriaged ?? 0;
  if (alarms.length === 0 && lost.length === 0 && waiting === 0) return null;
  return (
    <ul className={styles.alarms} aria-label="Alarms">
      {alarms.map((one) => (
        <li key={`${one.commit} ${one.why}`} className={styles.alarm}>
          <Commit hash={one.commit} /> {one.why} (
          {one.runs > 0 && `${counted(one.runs, "run")} in a row, `}
          <Time at={one.at} />)
        </li>
      ))}
      {lost.map((one) => (
        <li key={`${one.commit} ${one.place} ${one.tries} ${one.why}`} className={styles.alarm}>
          <Commit hash={one.commit} /> {one.why} ({counted(one.tries, "try", "tries")},{" "}
          {one.next_at ? <NextTry at={one.next_at} /> : "given up"})
        </li>
      ))}
      {waiting > 0 && (
        <li className={styles.warning}>
          {counted(waiting, "input")} that broke a build {waiting === 1 ? "waits" : "wait"} for the
          next run
        </li>
      )}
    </ul>
  );
}

function NextTry({ at }: { at: string }) {
  return (
    <>
      next try due <Time at={at} />
    </>
  );
}
