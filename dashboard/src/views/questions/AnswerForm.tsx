import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { answer, api, type Schemas } from "../../api/client";
import { useMay } from "../../api/who";
import { Button } from "../../ui/Button";
import { SelectField, TextField } from "../../ui/Field";
import { notify, notifyError } from "../../ui/Notices";
import { type Kind, kindOf, typedValue } from "./answers";
import styles from "./Questions.module.css";

type Question = Schemas["Question"];

/** A form for the answer to a question, by the type that the job asks for. */
export function AnswerForm({ question }: { question: Question }) {
  const client = useQueryClient();
  const offered = useMay("answer-questions", question.namespace);
  const kind = kindOf(question.schema);
  const [text, setText] = useState(kind.name === "choice" ? (kind.choices[0] ?? "") : "");
  const [problem, setProblem] = useState<string>();
  const send = useMutation({
    mutationFn: (value: unknown) =>
      answer(
        api.POST("/api/v1/jobs/{job}/answer", {
          params: { path: { job: question.job } },
          body: { value, key: question.key },
        }),
      ),
    onSuccess: () => notify(`Answered job ${question.job}`),
    onError: notifyError,
    onSettled: () => client.invalidateQueries({ queryKey: ["questions"] }),
  });
  if (!offered) return null;
  function submit(event: FormEvent): void {
    event.preventDefault();
    const value = typedValue(kind, text);
    setProblem(value.problem);
    if (!value.problem) send.mutate(value.value);
  }
  if (kind.name === "yes-or-no") {
    return (
      <div className={styles.form}>
        <Button kind="primary" busy={send.isPending} onClick={() => send.mutate(true)}>
          Yes
        </Button>
        <Button busy={send.isPending} onClick={() => send.mutate(false)}>
          No
        </Button>
      </div>
    );
  }
  return (
    <form className={styles.form} onSubmit={submit}>
      <Input kind={kind} text={text} problem={problem} onChange={setText} />
      <Button type="submit" kind="primary" busy={send.isPending}>
        Answer
      </Button>
    </form>
  );
}

function Input(props: {
  kind: Kind;
  text: string;
  problem: string | undefined;
  onChange: (text: string) => void;
}) {
  const { kind, text, problem, onChange } = props;
  if (kind.name === "choice") {
    return (
      <SelectField label="Answer" value={text} onChange={(event) => onChange(event.target.value)}>
        {kind.choices.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </SelectField>
    );
  }
  return (
    <TextField
      label="Answer"
      value={text}
      problem={problem}
      inputMode={kind.name === "number" ? "decimal" : undefined}
      hint={kind.name === "json" ? "As JSON, such as [1, 2]" : undefined}
      onChange={(event) => onChange(event.target.value)}
    />
  );
}
