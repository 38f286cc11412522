import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useId, useState } from "react";
import { answer, api, type Schemas } from "../../api/client";
import { inWords } from "../../api/errors";
import { may, mayChange, useWho } from "../../api/who";
import { Button } from "../../ui/Button";
import { notify } from "../../ui/Notices";
import { Time } from "../../ui/Time";
import styles from "./Job.module.css";

type Job = Schemas["Job"];

/** The question that a job waits to have answered, with the form for it. */
export function Question({ job }: { job: Job }) {
  const step = job.steps.find((one) => one.kind === "question" && one.state === "pending");
  const who = useWho().data;
  const asked = useQuery({
    queryKey: ["job", job.id, "questions", step?.key],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/questions", { signal })),
    enabled: step !== undefined,
  });
  if (!step || !who) return null;
  const schema = asked.data?.questions.find(
    (one) => one.job === job.id && one.key === step.key,
  )?.schema;
  const mayAnswer =
    may(who, "answer-questions", job.namespace) && mayChange(who, job.submitted_by, job.namespace);
  return (
    <section className={styles.question} aria-label="Question">
      <h2>{step.question ?? "It asks a question"}</h2>
      <p className={styles.soft}>
        asked <Time at={step.asked_at} />
        {step.until && (
          <>
            , ends <Time at={step.until} />
          </>
        )}
      </p>
      {mayAnswer ? (
        <AnswerForm key={step.key} job={job.id} question={step.key} schema={schema} />
      ) : (
        <p className={styles.soft}>You may not answer it.</p>
      )}
    </section>
  );
}

interface FormProps {
  job: number;
  question: string;
  schema: unknown;
}

function AnswerForm({ job, question, schema }: FormProps) {
  const client = useQueryClient();
  const id = useId();
  const [text, setText] = useState("");
  const [problem, setProblem] = useState<string>();
  const [busy, setBusy] = useState(false);
  async function send(value: unknown): Promise<void> {
    setBusy(true);
    setProblem(undefined);
    try {
      const params = { path: { job } };
      const body = { value, key: question };
      await answer(api.POST("/api/v1/jobs/{job}/answer", { params, body }));
      notify("Answered");
      await client.invalidateQueries({ queryKey: ["job", job] });
    } catch (error) {
      setProblem(inWords(error));
    }
    setBusy(false);
  }
  const choices = choicesOf(schema);
  return (
    <form
      className={styles.answer}
      onSubmit={(event) => {
        event.preventDefault();
        void send(typedValue(text, schema));
      }}
    >
      {choices.map((value) => (
        <Button key={String(value)} busy={busy} onClick={() => void send(value)}>
          {value === true ? "Yes" : value === false ? "No" : String(value)}
        </Button>
      ))}
      {choices.length === 0 && (
        <>
          <label htmlFor={id} className={styles.label}>
            Answer
          </label>
          <input
            id={id}
            className={styles.input}
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
          <Button type="submit" kind="primary" busy={busy}>
            Answer
          </Button>
        </>
      )}
      {problem && (
        <p role="alert" className={styles.problem}>
          {problem}
        </p>
      )}
    </form>
  );
}

/** Returns the few values that a schema allows. */
function choicesOf(schema: unknown): unknown[] {
  if (typeof schema !== "object" || schema === null) return [];
  const { type, enum: values } = schema as { type?: unknown; enum?: unknown };
  if (Array.isArray(values)) return values;
  return type === "boolean" ? [true, false] : [];
}

/** Returns what was typed as the schema wants it: text, or JSON. */
function typedValue(text: string, schema: unknown): unknown {
  const type =
    typeof schema === "object" && schema !== null ? (schema as { type?: unknown }).type : undefined;
  if (type === "string") return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
