import { Button } from "../../ui/Button";
import { moment } from "../../ui/format";
import styles from "./Overview.module.css";
import { type OverviewSearch, RANGE_NAMES, RANGES } from "./route";

/** Chooses how far back the figures go. */
export function RangePicker(props: {
  search: OverviewSearch;
  onChange: (next: OverviewSearch) => void;
}) {
  const { search, onChange } = props;
  const chosen = search.since ? undefined : (search.range ?? "1h");
  return (
    <fieldset className={styles.ranges}>
      <legend className="visually-hidden">Range</legend>
      {search.since && (
        <span className={styles.own}>
          {moment(search.since)}
          {search.until && ` to ${moment(search.until)}`}
        </span>
      )}
      {RANGES.map((range) => (
        <Button
          key={range}
          small
          kind={range === chosen ? "primary" : "plain"}
          aria-pressed={range === chosen}
          aria-label={`${range}: the last ${RANGE_NAMES[range]}`}
          onClick={() => onChange({ range, since: undefined, until: undefined })}
        >
          {range}
        </Button>
      ))}
    </fieldset>
  );
}
