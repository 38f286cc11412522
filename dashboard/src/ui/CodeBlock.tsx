import { useState } from "react";
import { IconButton } from "./Button";
import styles from "./CodeBlock.module.css";

/** Text to read or to paste elsewhere, with a button that copies it. */
export function CodeBlock({ text, label = "Copy" }: { text: string; label?: string }) {
  const [copied, setCopied] = useState(false);
  async function copy(): Promise<void> {
    await copyText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1_500);
  }
  return (
    <div className={styles.block}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines scroll by keyboard too. */}
      <pre className={styles.text} tabIndex={0}>
        {text}
      </pre>
      <IconButton
        className={styles.copy}
        icon={copied ? "check" : "copy"}
        label={copied ? "Copied" : label}
        small
        onClick={() => void copy()}
      />
    </div>
  );
}

/** Copies text; also where the page is not served over TLS, as on a private network. */
export async function copyText(text: string): Promise<void> {
  if (window.isSecureContext) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
