/** The part of JSON schemas that forms understand; everything else becomes a field for JSON. */
export interface Schema {
  type?: string | string[];
  title?: string;
  description?: string;
  default?: unknown;
  enum?: unknown[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  allOf?: Schema[];
  $ref?: string;
  $defs?: Record<string, Schema>;
}

export type Kind = "text" | "number" | "switch" | "choice" | "lines" | "json";

export interface FieldForm {
  name: string;
  kind: Kind;
  required: boolean;
  hint: string;
  choices: readonly string[];
  /** What the server uses if nothing is given; undefined: nothing. */
  fallback: unknown;
}

const PREFIX = "#/$defs/";
const DEEPEST = 20;

/** Returns the fields of a form, in the order of the arguments. */
export function fieldsOf(schema: Schema, order: readonly string[]): FieldForm[] {
  const properties = schema.properties ?? {};
  const known = order.filter((name) => name in properties);
  const rest = Object.keys(properties).filter((name) => !known.includes(name));
  return [...known, ...rest].map((name) => {
    const own = properties[name] ?? {};
    const plain = resolve(own, schema.$defs ?? {});
    const required = (schema.required ?? []).includes(name);
    return {
      name,
      kind: kindOf(plain),
      required,
      hint: hintOf({ ...plain, description: own.description ?? plain.description }, own, required),
      choices: (plain.enum ?? []).map(String),
      fallback: own.default,
    };
  });
}

/** Follows references, and takes the first of several forms that is not null. */
function resolve(schema: Schema, definitions: Record<string, Schema>, depth = 0): Schema {
  if (depth > DEEPEST) return {};
  if (schema.$ref?.startsWith(PREFIX)) {
    return resolve(definitions[schema.$ref.slice(PREFIX.length)] ?? {}, definitions, depth + 1);
  }
  const [only] = schema.allOf ?? [];
  if (only && schema.allOf?.length === 1) return resolve(only, definitions, depth + 1);
  const forms = (schema.anyOf ?? []).filter((form) => form.type !== "null");
  if (forms.length > 0) {
    const [first] = forms;
    if (forms.length === 1 && first) return resolve(first, definitions, depth + 1);
    const texts = forms.every((form) => form.type === "string" || isNumber(form));
    return texts ? { type: "string", title: schema.title } : {};
  }
  return schema;
}

function isNumber(schema: Schema): boolean {
  return schema.type === "integer" || schema.type === "number";
}

function kindOf(schema: Schema): Kind {
  if (schema.enum?.every((one) => typeof one === "string")) return "choice";
  if (schema.type === "boolean") return "switch";
  if (isNumber(schema)) return "number";
  if (schema.type === "string") return "text";
  if (schema.type === "array" && schema.items?.type === "string") return "lines";
  return "json";
}

function hintOf(schema: Schema, own: Schema, required: boolean): string {
  const fallback = isEmpty(own.default) ? undefined : own.default;
  const parts: string[] = [];
  if (schema.description) parts.push(schema.description);
  const kind = kindOf(schema);
  if (kind === "lines") parts.push("One for each line, or a JSON list.");
  if (kind === "json") parts.push(schema.title ? `${schema.title}, as JSON.` : "JSON.");
  if (!required && fallback !== undefined) {
    parts.push(`Default: ${typeof fallback === "string" ? fallback : JSON.stringify(fallback)}.`);
  }
  return parts.join(" ");
}

/** Returns whether a default is what an empty field means anyway. */
function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === "") return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}

/** Returns the value of what was typed; what does not fit is sent as text, for the server to say. */
export function typedValue(field: FieldForm, text: string): unknown {
  if (field.kind === "switch") return text === "true";
  if (field.kind === "lines") return linesOf(text);
  if (field.kind === "number") {
    const value = Number(text);
    return text.trim() !== "" && Number.isFinite(value) ? value : text;
  }
  if (field.kind !== "json") return text;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** Returns the texts of a list; as JSON they may be empty, or of several lines. */
function linesOf(text: string): unknown {
  if (text.trimStart().startsWith("[")) {
    try {
      return JSON.parse(text) as unknown;
    } catch {
      // It is text that begins like a list.
    }
  }
  return text.split("\n").filter((line) => line !== "");
}

/** Returns the arguments: those that were filled in, by name. */
export function argumentsOf(
  fields: readonly FieldForm[],
  typed: Readonly<Record<string, string>>,
): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const field of fields) {
    const text = typed[field.name];
    if (text !== undefined && text !== "") values[field.name] = typedValue(field, text);
  }
  return values;
}
