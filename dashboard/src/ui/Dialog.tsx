import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import { inWords } from "../api/errors";
import { Button, IconButton } from "./Button";
import styles from "./Dialog.module.css";

const FIELDS = ["input", "select", "textarea"].map((name) => `[data-body] ${name}`).join(", ");

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ReactNode;
  /** Buttons at the bottom. */
  actions?: ReactNode;
  wide?: boolean;
}

/** A dialog over the page; Escape and a click beside it close it. Mounted means open. */
export function Dialog({ title, onClose, children, actions, wide = false }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = ref.current;
    if (!dialog || dialog.open) return;
    dialog.showModal();
    // The first field, else the first button at the bottom; a browser would take "Close".
    const field = dialog.querySelector<HTMLElement>(FIELDS);
    (field ?? dialog.querySelector<HTMLElement>("footer button"))?.focus();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes every dialog.
    <dialog
      ref={ref}
      className={`${styles.dialog} ${wide ? styles.wide : ""}`}
      aria-labelledby={id}
      onClose={onClose}
      onClick={(event) => event.target === ref.current && onClose()}
    >
      <div className={styles.inside}>
        <header className={styles.head}>
          <h2 id={id}>{title}</h2>
          <IconButton icon="close" label="Close" onClick={onClose} small />
        </header>
        <div className={styles.body} data-body>
          {children}
        </div>
        {actions && <footer className={styles.foot}>{actions}</footer>}
      </div>
    </dialog>
  );
}

interface ConfirmProps {
  title: string;
  /** What will happen, in plain words. */
  children: ReactNode;
  /** The words of the button, such as "Cancel 12 jobs". */
  confirm: string;
  danger?: boolean;
  /** There is nothing to confirm. */
  disabled?: boolean;
  onConfirm: () => Promise<unknown> | unknown;
  onClose: () => void;
}

/** Asks before something is done, and shows why it failed. */
export function ConfirmDialog(props: ConfirmProps) {
  const { title, children, confirm, danger = false, disabled, onConfirm, onClose } = props;
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  async function run(): Promise<void> {
    setBusy(true);
    setProblem(undefined);
    try {
      await onConfirm();
      onClose();
    } catch (error) {
      setProblem(inWords(error));
      setBusy(false);
    }
  }
  const actions = (
    <>
      <Button onClick={onClose}>Back</Button>
      <Button
        kind={danger ? "danger" : "primary"}
        busy={busy}
        disabled={disabled}
        onClick={() => void run()}
      >
        {confirm}
      </Button>
    </>
  );
  return (
    <Dialog title={title} onClose={onClose} actions={actions}>
      {children}
      {problem && (
        <p role="alert" className={styles.problem}>
          {problem}
        </p>
      )}
    </Dialog>
  );
}
