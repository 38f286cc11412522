import { useQuery } from "@tanstack/react-query";
import { answer, api, type Schemas } from "../../api/client";
import { ErrorBox } from "../../ui/ErrorBox";
import { sentence } from "../../ui/format";
import { JobCount } from "../../ui/links";
import { Card, Section } from "../../ui/Page";
import styles from "./Worker.module.css";

type WorkEntry = Schemas["WorkEntry"];

/** What is ready to run, and what keeps this worker from it. */
export function ExplainWorker({ worker }: { worker: Schemas["WorkerInfo"] }) {
  const found = useQuery({
    queryKey: ["worker", worker.name, "explain"],
    queryFn: ({ signal }) =>
      answer(
        api.GET("/api/v1/workers/{worker}/explain", {
          signal,
          params: { path: { worker: worker.id } },
        }),
      ),
  });
  return (
    <Section title="What it could run now">
      {found.error && <ErrorBox error={found.error} onRetry={() => void found.refetch()} />}
      {found.data && (
        <Card className={styles.stack}>
          <p>{sentence(found.data.summary)}</p>
          {(found.data.work ?? []).length > 0 && (
            <ul className={styles.work}>
              {(found.data.work ?? []).map((entry) => (
                <Entry key={`${entry.namespace} ${entry.queue} ${entry.task}`} entry={entry} />
              ))}
            </ul>
          )}
        </Card>
      )}
    </Section>
  );
}

function Entry({ entry }: { entry: WorkEntry }) {
  const filter = { state: ["queued"], queue: entry.queue, task: entry.task };
  return (
    <li className={styles.entry} data-runnable={entry.runnable || undefined}>
      <span>
        <JobCount
          value={entry.jobs}
          atLeast={entry.jobs_more}
          filter={{ ...filter, namespace: entry.namespace }}
        />{" "}
        queued: {entry.task} in {entry.queue}, namespace {entry.namespace}
      </span>
      <span className={styles.soft}>
        {entry.runnable ? "it can run these" : [entry.why ?? "", ...(entry.also ?? [])].join("; ")}
      </span>
    </li>
  );
}
