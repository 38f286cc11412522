import { inWords } from "../api/errors";
import { Button } from "./Button";
import styles from "./ErrorBox.module.css";
import { Icon } from "./Icon";

/** Shows why something could not be shown. */
export function ErrorBox({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  return (
    <div className={styles.box} role="alert">
      <Icon name="warning" />
      <p className={styles.text}>{inWords(error)}</p>
      {onRetry && (
        <Button small onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  );
}
