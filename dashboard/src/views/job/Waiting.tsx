import { useQuery, useQueryClient } from "@tanstack/react-query";
import { answer, api, type Schemas } from "../../api/client";
import { useLiveQueries } from "../../live/useLive";
import { ErrorBox } from "../../ui/ErrorBox";
import { exact, sentence } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import { JobLink } from "../../ui/links";
import { Card, Section } from "../../ui/Page";
import { Time } from "../../ui/Time";
import { Told } from "../../ui/Told";
import { ChangeStep } from "./ChangeStep";
import styles from "./Job.module.css";
import { Matrix } from "./Matrix";

/** Why a job waits, in words and worker by worker, and what would let it run. */
export function Waiting({ job }: { job: Schemas["Job"] }) {
  const client = useQueryClient();
  const path = { job: job.id };
  const key = ["job", job.id, "explain"];
  const found = useQuery({
    queryKey: key,
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/jobs/{job}/explain", { params: { path }, signal })),
  });
  const table = useQuery({
    queryKey: [...key, "matrix"],
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/jobs/{job}/explain/matrix", { params: { path }, signal })),
  });
  useLiveQueries(["workers", "queues"], key);
  if (found.error) return <ErrorBox error={found.error} onRetry={() => void found.refetch()} />;
  if (!found.data) return <Loading rows={6} />;
  const told = found.data;
  const start = told.estimated_start;
  return (
    <div className={styles.stack}>
      <Card>
        <p className={styles.summary}>
          <Told text={told.summary} />
        </p>
        {(told.waiting_for.length > 1 ||
          told.waiting_for.some((one) => one.because.length > 0)) && (
          <ul className={styles.reasons}>
            {told.waiting_for.map((one) => (
              <li key={one.text}>
                {one.job !== null ? (
                  <JobLink id={one.job}>{one.text}</JobLink>
                ) : (
                  <Told text={one.text} />
                )}
                {one.because.length > 0 && (
                  <ul>
                    {one.because.map((because) => (
                      <li key={because}>because {because}</li>
                    ))}
                  </ul>
                )}
              </li>
            ))}
          </ul>
        )}
        {start && (
          <p
            className={styles.soft}
            title={`${exact(Date.parse(start.earliest))} – ${exact(Date.parse(start.latest))}`}
          >
            Likely to start <Time at={start.likely} /> (between <Time at={start.earliest} /> and{" "}
            <Time at={start.latest} />)
          </p>
        )}
        {told.limits.map((limit) => (
          <p key={`${limit.kind} ${limit.name}`} className={styles.soft}>
            {sentence(limit.kind)} {limit.name}: {limit.used} of {limit.max} in use
          </p>
        ))}
        {told.notes.map((note) => (
          <p key={note} className={styles.soft}>
            <Told text={note} />
          </p>
        ))}
      </Card>
      {told.smallest_change && (
        <Section title="What would let it run">
          <ol className={styles.steps}>
            {told.smallest_change.steps.map((step) => (
              <ChangeStep
                key={step.text}
                step={step}
                onDone={() => client.invalidateQueries({ queryKey: ["job", job.id] })}
              />
            ))}
          </ol>
        </Section>
      )}
      {table.data && table.data.rows.length > 0 && job.state !== "suspended" && (
        <Section title="Workers and what it asks of them">
          <Matrix matrix={table.data} />
        </Section>
      )}
    </div>
  );
}
