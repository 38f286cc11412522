import type { Schemas } from "../../api/client";
import type { FieldForm } from "./schema";

type Job = Schemas["Job"];
type Task = Schemas["TaskInfo"];
type Values = Record<string, unknown>;

const CALLED = "functions:missing!="; // Jobs that call a function require it by themselves.

/** Returns the name of the task whose form fits a job: that of its function, if workers tell of it. */
export function taskLike(job: Job, tasks: readonly Task[]): string {
  const path = (job.args as { function?: unknown } | null)?.function;
  const known = job.task === "python" && tasks.some((one) => one.name === path);
  return known ? String(path) : job.task;
}

/** Returns what the form of a task holds so that it submits the arguments of a job. */
export function argumentsLike(job: Job, fields: readonly FieldForm[]): Record<string, string> {
  if (fields.length === 0) return { args: job.args === null ? "" : JSON.stringify(job.args) };
  return texts(fields, namedArguments(job, fields));
}

function namedArguments(job: Job, fields: readonly FieldForm[]): Values {
  const byPlace = (list: readonly unknown[]): Values =>
    Object.fromEntries(fields.flatMap(({ name }, at) => (at in list ? [[name, list[at]]] : [])));
  const given = job.args as Values | unknown[] | null;
  if (Array.isArray(given)) return byPlace(given);
  const isCall = job.task === "python" && !fields.some(({ name }) => name === "function");
  if (!isCall) return given ?? {};
  const { args = [], kwargs = {} } = (given ?? {}) as { args?: unknown[]; kwargs?: Values };
  return { ...byPlace(args), ...kwargs };
}

/** Returns what the options of a form hold; a key is left out, since one job has it at a time. */
export function optionsLike(job: Job, fields: readonly FieldForm[]): Record<string, string> {
  const given: Values = {
    name: job.name,
    queue: job.queue,
    namespace: job.namespace,
    priority: job.priority.base || null,
    timeout: job.timeout,
    retries: job.retries,
    requires: job.requires.filter((clause) => !clause.startsWith(CALLED)),
    resources: job.resources,
    labels: job.labels,
    secrets: job.secrets,
  };
  return texts(fields, given);
}

function texts(fields: readonly FieldForm[], values: Values): Record<string, string> {
  const found: Record<string, string> = {};
  for (const field of fields) {
    const value = values[field.name];
    if (!isEmpty(value)) found[field.name] = textOf(field, value);
  }
  return found;
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === "") return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}

/** Returns what somebody would have typed for a value. */
function textOf(field: FieldForm, value: unknown): string {
  const isPlain = (one: unknown) => typeof one === "string" && /^[^[\n][^\n]*$/.test(one);
  if (field.kind === "lines" && Array.isArray(value) && value.every(isPlain)) {
    return value.join("\n");
  }
  return typeof value === "string" ? value : JSON.stringify(value);
}
