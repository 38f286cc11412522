import { useState } from "react";
import { TextField } from "../../ui/Field";
import { listText, wordsOf } from "./commandLine";

/** A command line that fills the field of the program and its arguments below it. */
export function CommandLine({ onWords }: { onWords: (text: string) => void }) {
  const [line, setLine] = useState("");
  const isOpen = wordsOf(line) === undefined;
  return (
    <TextField
      label="command line"
      hint="It is split into argv as a shell would; pipes and variables need sh -c '…'."
      problem={isOpen ? "A quote is not closed." : undefined}
      value={line}
      onChange={(event) => {
        setLine(event.target.value);
        const words = wordsOf(event.target.value);
        if (words) onWords(words.length > 0 ? listText(words) : "");
      }}
    />
  );
}
