import { Dialog } from "../ui/Dialog";
import { Kbd } from "../ui/Kbd";
import styles from "./KeysDialog.module.css";
import type { Shortcut } from "./keys";

/** Lists the keys. */
export function KeysDialog(props: { shortcuts: readonly Shortcut[]; onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={props.onClose}>
      <dl className={styles.keys}>
        {props.shortcuts.map((shortcut) => (
          <div key={shortcut.keys} className={styles.row}>
            <dt>
              {shortcut.keys.split(" ").map((key) => (
                <Kbd key={key}>{key}</Kbd>
              ))}
            </dt>
            <dd>{shortcut.label}</dd>
          </div>
        ))}
        <div className={styles.row}>
          <dt>
            <Kbd>↑</Kbd>
            <Kbd>↓</Kbd>
          </dt>
          <dd>Move through the rows of a table</dd>
        </div>
        <div className={styles.row}>
          <dt>
            <Kbd>Enter</Kbd>
          </dt>
          <dd>Open the row</dd>
        </div>
        <div className={styles.row}>
          <dt>
            <Kbd>Esc</Kbd>
          </dt>
          <dd>Close a dialog or a menu</dd>
        </div>
      </dl>
    </Dialog>
  );
}
