import { Button } from "../../ui/Button";
import { CodeBlock } from "../../ui/CodeBlock";
import { Dialog } from "../../ui/Dialog";
import styles from "./Tokens.module.css";

/** The secret of a new token: this once. */
export function Secret(props: { token: string; name: string; onClose: () => void }) {
  const { token, name, onClose } = props;
  const actions = (
    <Button kind="primary" onClick={onClose}>
      I have copied it
    </Button>
  );
  return (
    <Dialog title={`The token ${name}`} onClose={onClose} actions={actions} wide>
      <div className={styles.stack}>
        <p>Copy it now: it is not kept, and never shown again.</p>
        <CodeBlock text={token} label="Copy the token" />
        <p className={styles.soft}>
          Programs take it as <code>WINDLASS_TOKEN</code>, requests as{" "}
          <code>Authorization: Bearer …</code>
        </p>
      </div>
    </Dialog>
  );
}
