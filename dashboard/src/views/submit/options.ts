import type { FieldForm } from "./schema";

const field = (name: string, hint: string, kind: FieldForm["kind"] = "text"): FieldForm => ({
  name,
  kind,
  hint,
  required: false,
  choices: [],
  fallback: undefined,
});

/** The options of jobs that people set most; the command line has all of them. */
export const COMMON: readonly FieldForm[] = [
  field("name", "A name to show for it."),
  field("queue", "live, default, batch or a queue of your own."),
  field("namespace", "Empty: that of your token, or default."),
  field("priority", "high, medium, low or a number."),
];

export const MORE: readonly FieldForm[] = [
  field("timeout", "How long it may run: 90, 15m, 6h."),
  field("retries", "How many more tries it gets after any failure.", "number"),
  field(
    "requires",
    "What the worker must offer, such as memory>=4GiB; one for each line.",
    "lines",
  ),
  field("resources", 'What it uses, as JSON: {"cpus": 2}.', "json"),
  field("labels", 'Names and values, as JSON: {"team": "a"}.', "json"),
  field("secrets", "Names of worker secrets that it needs; one for each line.", "lines"),
  field("delay", "How long after its submission it may start at the earliest."),
  field("key", "A key that one job has at a time: the same again returns that job."),
];
