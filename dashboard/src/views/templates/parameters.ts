/** A parameter of a template as its body declares it. */
export interface Parameter {
  name: string;
  kind: "string" | "integer" | "number" | "boolean" | "list";
  description: string;
  initial: string;
  required: boolean;
  choices: string[];
}

const KINDS = ["string", "integer", "number", "boolean", "list"] as const;

/** Returns the parameters that a template declares; the server checks the values. */
export function parametersOf(declared: unknown): Parameter[] {
  if (!isObject(declared)) return [];
  return Object.entries(declared).map(([name, given]) => parameter(name, given));
}

function parameter(name: string, given: unknown): Parameter {
  const about = isObject(given) ? given : { default: given };
  const initial = about.default ?? undefined;
  const choices = Array.isArray(about.choices) ? about.choices.map(text) : [];
  return {
    name,
    kind: KINDS.find((kind) => kind === about.type) ?? kindOf(initial),
    description: typeof about.description === "string" ? about.description : "",
    initial: initial === undefined ? "" : text(initial),
    required: initial === undefined,
    choices,
  };
}

function kindOf(value: unknown): Parameter["kind"] {
  if (Array.isArray(value)) return "list";
  if (typeof value === "boolean") return "boolean";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return "string";
}

function text(value: unknown): string {
  if (Array.isArray(value)) return value.map(text).join(",");
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Returns what was entered as the server takes it; what is empty takes its default. */
export function entryOf(parameter: Parameter, entered: string): unknown {
  if (parameter.kind === "boolean") return entered === "true";
  if (entered === "" && (parameter.kind !== "string" || !parameter.required)) return undefined;
  if (parameter.kind === "integer" || parameter.kind === "number") {
    const number = Number(entered);
    return Number.isNaN(number) ? entered : number;
  }
  if (parameter.kind === "list") return entered.split(",").map((one) => one.trim());
  return entered;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
