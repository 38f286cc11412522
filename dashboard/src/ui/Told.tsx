import { exact, sentence } from "./format";

const SPECIAL = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z|`\w+`)/;

/** A text of the server as a sentence, with its times as people read them, and `names` as code. */
export function Told({ text }: { text: string }) {
  const parts = sentence(text).split(SPECIAL);
  // biome-ignore lint/suspicious/noArrayIndexKey: parts are where they are.
  return parts.map((part, at) => (at % 2 === 1 ? <Special key={at} text={part} /> : part));
}

function Special({ text }: { text: string }) {
  if (text.startsWith("`")) return <code>{text.slice(1, -1)}</code>;
  return <time dateTime={text}>{exact(Date.parse(text))}</time>;
}
