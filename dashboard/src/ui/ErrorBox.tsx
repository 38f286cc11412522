import { ApiError, adviceFor, inWords, isTemporary } from "../api/errors";
import { Button } from "./Button";
import styles from "./ErrorBox.module.css";
import { Icon } from "./Icon";

/** Of lists, whose filters may be typed into the address. */
export const FILTER_HINT = "Change or remove this filter.";

interface Props {
  error: unknown;
  /** Offered where trying again may help. */
  onRetry?: () => void;
  /** What to do about a value that the server refused. */
  hint?: string;
}

/** Shows why something could not be shown, and what to do about it. */
export function ErrorBox({ error, onRetry, hint }: Props) {
  const isRefused = error instanceof ApiError && [400, 422].includes(error.status);
  const advice = adviceFor(error) ?? (isRefused ? hint : undefined);
  return (
    <div className={styles.box} role="alert">
      <Icon name="warning" />
      <div className={styles.text}>
        <p>{inWords(error)}</p>
        {advice && <p className={styles.advice}>{advice}</p>}
      </div>
      {onRetry && isTemporary(error) && (
        <Button small onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  );
}
