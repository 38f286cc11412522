/** Which control an answer needs, by its JSON Schema, and the value that a person typed. */
export type Kind =
  | { name: "yes-or-no" | "text" | "number" | "json" }
  | { name: "choice"; choices: string[] };

interface Schema {
  type?: unknown;
  enum?: unknown;
  default?: unknown;
  properties?: Record<string, Schema>;
  $ref?: unknown;
  $defs?: Record<string, Schema>;
}

export function kindOf(given: unknown): Kind {
  const schema = resolved(given);
  if (!schema) return { name: "json" };
  if (Array.isArray(schema.enum) && schema.enum.every((one) => typeof one === "string")) {
    return { name: "choice", choices: schema.enum };
  }
  if (schema.type === "boolean") return { name: "yes-or-no" };
  if (schema.type === "string") return { name: "text" };
  if (schema.type === "integer" || schema.type === "number") return { name: "number" };
  return { name: "json" };
}

/** Returns the value of a typed answer, or what is wrong with it. */
export function typedValue(kind: Kind, text: string): { value?: unknown; problem?: string } {
  if (kind.name === "text" || kind.name === "choice") return { value: text };
  if (kind.name === "number") {
    const value = Number(text);
    return text.trim() === "" || Number.isNaN(value) ? { problem: "Expected a number" } : { value };
  }
  try {
    return { value: JSON.parse(text) };
  } catch {
    return { problem: 'Expected JSON, such as "text" or 7' };
  }
}

const SAMPLES: Record<string, unknown> = {
  string: "text",
  integer: 1,
  number: 1.5,
  boolean: true,
  array: [],
  object: {},
};

/** Returns an answer of the form that is wanted, as JSON. */
export function exampleOf(given: unknown): string {
  const properties = resolved(given)?.properties;
  if (!properties) return "[1, 2]";
  const values = Object.entries(properties).map(([name, own]) => [
    name,
    own.default ?? SAMPLES[String(own.type)] ?? null,
  ]);
  return JSON.stringify(Object.fromEntries(values));
}

function resolved(given: unknown): Schema | undefined {
  if (typeof given !== "object" || given === null) return undefined;
  const schema = given as Schema;
  if (typeof schema.$ref !== "string") return schema;
  const name = schema.$ref.split("/").at(-1) ?? "";
  return schema.$defs?.[name];
}
