const SPACE = /\s/;

/** Returns the words of a command line, as a shell would split it; undefined if a quote is open. */
export function wordsOf(line: string): string[] | undefined {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let at = 0; at < line.length; at += 1) {
    const one = line.charAt(at);
    const next = line.charAt(at + 1);
    if (quote === "'" ? one === "'" : quote !== "" && one === quote) {
      quote = "";
    } else if (one === "\\" && quote !== "'" && (quote === "" || /["\\$`]/.test(next))) {
      word = (word ?? "") + next;
      at += 1;
    } else if (quote === "" && (one === "'" || one === '"')) {
      quote = one;
      word ??= "";
    } else if (quote === "" && SPACE.test(one)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else {
      word = (word ?? "") + one;
    }
  }
  if (quote !== "") return undefined;
  return word === undefined ? words : [...words, word];
}

/** Returns words as the field of a list takes them: one for each line, or as JSON. */
export function listText(words: readonly string[]): string {
  const [first = ""] = words;
  const isPlain = words.every((word) => word !== "" && !word.includes("\n"));
  return isPlain && !first.startsWith("[") ? words.join("\n") : JSON.stringify(words);
}
