import { useQuery } from "@tanstack/react-query";
import { answer, api, type Schemas } from "../../api/client";
import { Time } from "../../ui/Time";
import { AnswerForm } from "../questions/AnswerForm";
import styles from "./Job.module.css";

type Job = Schemas["Job"];

const FEW = 20; // questions of one job

/** The question that a job waits to have answered, with the form for it. */
export function Question({ job }: { job: Job }) {
  const step = job.steps.find((one) => one.kind === "question" && one.state === "pending");
  const asked = useQuery({
    queryKey: ["job", job.id, "questions", step?.key],
    queryFn: ({ signal }) => {
      const query = { after: job.id - 1, limit: FEW }; // Questions are listed by job.
      return answer(api.GET("/api/v1/questions", { signal, params: { query } }));
    },
    enabled: step !== undefined,
  });
  if (!step) return null;
  const question = asked.data?.questions.find((one) => one.job === job.id && one.key === step.key);
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
      {question && <AnswerForm key={step.key} question={question} />}
    </section>
  );
}
