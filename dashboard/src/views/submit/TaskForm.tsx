import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { answer, api, type Schemas } from "../../api/client";
import { Button } from "../../ui/Button";
import { ErrorBox } from "../../ui/ErrorBox";
import { counted } from "../../ui/format";
import { notify } from "../../ui/Notices";
import { Card } from "../../ui/Page";
import { CommandLine } from "./CommandLine";
import { argumentsLike, optionsLike } from "./like";
import { COMMON, MORE } from "./options";
import { SchemaFields } from "./SchemaFields";
import styles from "./Submit.module.css";
import { argumentsOf, type FieldForm, fieldsOf, type Schema } from "./schema";
import { missingOf, problemsOf, Texts } from "./Texts";
import { useKnownNames } from "./useKnownNames";
import { useSettled } from "./useSettled";

type Task = Schemas["TaskInfo"];
type Typed = Record<string, string>;
const OPTIONS = [...COMMON, ...MORE];
const SHOWN = 4; // arguments that a form shows without folding
const FIRST = 2; // of more, those that are always there

/** The form of a task: its arguments, the options of the job, and the same as text. */
export function TaskForm({ task, like }: { task: Task; like?: Schemas["Job"] }) {
  const navigate = useNavigate();
  const fields = useMemo(() => fieldsOf(task.schema as Schema, task.order ?? []), [task]);
  const [begun] = useState<Typed>(() => (like ? argumentsLike(like, fields) : {}));
  const [typed, setTyped] = useState<Typed>(begun);
  const [prefill] = useState<Typed>(() => ({
    ...prefilled(task),
    ...(like && optionsLike(like, OPTIONS)),
  }));
  const [options, setOptions] = useState<Typed>(prefill);
  const known = useKnownNames();
  const [usual, rare] = useMemo(() => folded(task, fields), [task, fields]);
  const isFree = fields.length === 0 && Object.keys(task.schema).length === 0;
  const job = useMemo(
    () => jobOf(task, fields, typed, options, isFree),
    [task, fields, typed, options, isFree],
  );
  const settled = useSettled(job, 250);
  const preview = useQuery({
    queryKey: ["preview", settled],
    queryFn: ({ signal }) =>
      answer(
        api.POST("/api/v1/jobs/preview", {
          signal,
          body: { job: settled as Record<string, never> },
        }),
      ),
    placeholderData: (before) => before,
    gcTime: 10_000,
  });
  const submitting = useMutation({
    mutationFn: () =>
      answer(api.POST("/api/v1/jobs", { body: { jobs: [job as Schemas["JobSpec"]] } })),
    onSuccess: (reply) => {
      const [id] = reply.ids;
      notify(reply.applied[0] ? `Submitted job ${id}` : `Job ${id} has this key already`);
      void navigate({ to: "/jobs/$job", params: { job: String(id) } });
    },
  });
  const touched = isTouched(typed) || options !== prefill || submitting.submittedAt > 0;
  const { byField, others } = problemsOf(preview.data, touched);
  const free = {
    name: "args",
    kind: "json",
    required: false,
    hint: "",
    choices: [],
    fallback: undefined,
  } as const;
  return (
    <div className={styles.columns}>
      <form
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          submitting.mutate();
        }}
      >
        <Card className={styles.stack}>
          <h2>Arguments</h2>
          {fields.length === 0 && !isFree && <p className={styles.soft}>It takes none.</p>}
          {task.is_built_in && fields.some((field) => field.name === "argv") && (
            <CommandLine onWords={(argv) => setTyped((before) => ({ ...before, argv }))} />
          )}
          <SchemaFields
            fields={isFree ? [{ ...free, hint: "An object by name, or a list, as JSON." }] : usual}
            typed={typed}
            problems={isFree ? byField("") : byField("args.")}
            onType={(name, text) => setTyped((before) => ({ ...before, [name]: text }))}
          />
          {rare.length > 0 && (
            <details open={rare.some((field) => begun[field.name])}>
              <summary>{counted(rare.length, "more argument")}</summary>
              <div className={styles.stack}>
                <SchemaFields
                  fields={rare}
                  typed={typed}
                  problems={byField("args.")}
                  onType={(name, text) => setTyped((before) => ({ ...before, [name]: text }))}
                />
              </div>
            </details>
          )}
        </Card>
        <Card className={styles.stack}>
          <h2>Options</h2>
          <SchemaFields
            fields={COMMON}
            typed={options}
            suggestions={known}
            problems={byField("")}
            onType={(name, text) => setOptions((before) => ({ ...before, [name]: text }))}
          />
          <details open={MORE.some((field) => prefill[field.name])}>
            <summary>More options</summary>
            <div className={styles.stack}>
              <SchemaFields
                fields={MORE}
                typed={options}
                problems={byField("")}
                onType={(name, text) => setOptions((before) => ({ ...before, [name]: text }))}
              />
            </div>
          </details>
        </Card>
        {submitting.error && <ErrorBox error={submitting.error} />}
        <div className={styles.send}>
          <Button kind="primary" type="submit" busy={submitting.isPending}>
            Submit
          </Button>
        </div>
      </form>
      <Texts
        preview={preview.data}
        error={preview.error}
        others={others}
        missing={missingOf(fields, typed)}
        touched={touched}
      />
    </div>
  );
}

/** Returns the arguments to show, and those of built-in tasks that few people need. */
function folded(task: Task, fields: FieldForm[]): [FieldForm[], FieldForm[]] {
  if (!task.is_built_in || fields.length <= SHOWN) return [fields, []];
  const isUsual = (field: FieldForm, at: number) => field.required || at < FIRST;
  return [fields.filter(isUsual), fields.filter((field, at) => !isUsual(field, at))];
}

function isTouched(typed: Typed): boolean {
  return Object.values(typed).some((text) => text !== "");
}

function prefilled(task: Task): Typed {
  const given = (task.options ?? {}) as Record<string, unknown>;
  const typed: Typed = {};
  for (const field of OPTIONS) {
    const value = given[field.name];
    if (value === undefined || value === null) continue;
    if (Array.isArray(value)) typed[field.name] = value.join("\n");
    else typed[field.name] = typeof value === "object" ? JSON.stringify(value) : String(value);
  }
  return typed;
}

function jobOf(
  task: Task,
  fields: ReturnType<typeof fieldsOf>,
  typed: Typed,
  options: Typed,
  isFree: boolean,
): Record<string, unknown> {
  const given = (task.options ?? {}) as Record<string, unknown>;
  const own = Object.fromEntries(
    Object.entries(given).filter(([name]) => !OPTIONS.some((field) => field.name === name)),
  );
  const job = { ...own, ...argumentsOf(OPTIONS, options) };
  const named = argumentsOf(fields, typed);
  if (!task.is_built_in && task.path === task.name) {
    // A function without a name of its own is called by its path.
    const listed = task.positional ? listedOf(fields, named) : [];
    const call = {
      function: task.path,
      args: listed,
      kwargs: task.positional ? {} : named,
    };
    return { task: "python", args: call, ...job };
  }
  if (isFree) return { task: task.name, args: freeArguments(typed.args ?? ""), ...job };
  const args = task.positional ? listedOf(fields, named) : named;
  return { task: task.name, args, ...job };
}

/** Returns arguments by position up to the last one given; what is empty before has its default. */
function listedOf(fields: readonly FieldForm[], named: Record<string, unknown>): unknown[] {
  const last = fields.findLastIndex((field) => named[field.name] !== undefined);
  return fields.slice(0, last + 1).map((field) => named[field.name] ?? field.fallback ?? null);
}

function freeArguments(text: string): unknown {
  if (text === "") return null;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
