import { exact, sentence } from "./format";

const MOMENT = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/;

/** A text of the server as a sentence, with its times as people read them. */
export function Told({ text }: { text: string }) {
  const parts = sentence(text).split(MOMENT);
  return parts.map((part, at) =>
    at % 2 === 1 ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: parts are where they are.
      <time key={at} dateTime={part}>
        {exact(Date.parse(part))}
      </time>
    ) : (
      part
    ),
  );
}
