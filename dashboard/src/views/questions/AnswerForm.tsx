import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { answer, api, type Schemas } from "../../api/client";
import { inWords } from "../../api/errors";
import { Button } from "../../ui/Button";
import { SelectField, TextField } from "../../ui/Field";
import { notify } from "../../ui/Notices";
import { exampleOf, type Kind, kindOf, typedValue } from "./answers";
import styles from "./Questions.module.css";

type Question = Schemas["Question"];

const FEW = 5; // choices that get a button each

/** A form for the answer to a question, by the type that the job asks for. */
export function AnswerForm({ question }: { question: Question }) {
  const client = useQueryClient();
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
    onError: (error) => setProblem(inWords(error)),
    onSettled: async () => {
      await client.invalidateQueries({ queryKey: ["questions"] });
      await client.invalidateQueries({ queryKey: ["job", question.job] });
    },
  });
  if (!question.may_answer) return <p className={styles.facts}>You may not answer it.</p>;
  function submit(event: FormEvent): void {
    event.preventDefault();
    const value = typedValue(kind, text);
    setProblem(value.problem);
    if (!value.problem) send.mutate(value.value);
  }
  const buttons = buttonsOf(kind);
  if (buttons.length > 0) {
    return (
      <div className={styles.form}>
        {buttons.map(([label, value], at) => (
          <Button
            key={label}
            kind={at === 0 && kind.name === "yes-or-no" ? "primary" : undefined}
            busy={send.isPending}
            onClick={() => send.mutate(value)}
          >
            {label}
          </Button>
        ))}
        {problem && <p role="alert">{problem}</p>}
      </div>
    );
  }
  return (
    <form className={styles.form} onSubmit={submit}>
      <Input
        kind={kind}
        text={text}
        problem={problem}
        example={exampleOf(question.schema)}
        onChange={setText}
      />
      <Button type="submit" kind="primary" busy={send.isPending}>
        Answer
      </Button>
    </form>
  );
}

/** Returns the answers that get a button each, if they are few. */
function buttonsOf(kind: Kind): [string, unknown][] {
  if (kind.name === "yes-or-no") {
    return [
      ["Yes", true],
      ["No", false],
    ];
  }
  if (kind.name !== "choice" || kind.choices.length > FEW) return [];
  return kind.choices.map((one) => [one, one]);
}

function Input(props: {
  kind: Kind;
  text: string;
  problem: string | undefined;
  example: string;
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
      hint={kind.name === "json" ? `As JSON, such as ${props.example}` : undefined}
      onChange={(event) => onChange(event.target.value)}
    />
  );
}
