import { useQuery } from "@tanstack/react-query";
import { answer, api, type Schemas } from "../../api/client";
import { CodeBlock } from "../../ui/CodeBlock";
import { ErrorBox } from "../../ui/ErrorBox";
import { Facts } from "../../ui/Facts";
import { Loading } from "../../ui/Loading";
import { WorkerLink } from "../../ui/links";
import { Card, Section } from "../../ui/Page";
import styles from "./Job.module.css";

/** How to run a job again by hand. */
export function Reproduce({ job }: { job: Schemas["Job"] }) {
  const found = useQuery({
    queryKey: ["job", job.id, "reproduce", job.attempt],
    queryFn: ({ signal }) =>
      answer(
        api.GET("/api/v1/jobs/{job}/reproduce", { params: { path: { job: job.id } }, signal }),
      ),
  });
  if (found.error) return <ErrorBox error={found.error} />;
  if (!found.data) return <Loading rows={5} />;
  const told = found.data;
  const variables = Object.entries(told.env).map(([name, value]) => `${name}=${value}`);
  return (
    <div className={styles.stack}>
      <Section title="Submit it again">
        <CodeBlock text={told.command} label="Copy the command" />
      </Section>
      <Section title="In Python">
        <CodeBlock text={told.python} label="Copy the program" />
      </Section>
      {told.call && (
        <Section title="Call its function here, without a queue">
          <CodeBlock text={told.call} label="Copy the call" />
        </Section>
      )}
      {told.program && (
        <Section title="What the worker ran">
          <CodeBlock text={told.program} label="Copy the command line" />
        </Section>
      )}
      {told.fetch.length > 0 && (
        <Section title="Get the files that it read">
          <CodeBlock text={told.fetch.join("\n")} label="Copy the commands" />
        </Section>
      )}
      <Section title="Its environment">
        <Card>
          <Facts
            items={[
              ["worker", told.worker ? <WorkerLink key="worker" name={told.worker} /> : "none yet"],
              ["isolation", told.isolation ?? undefined],
              ["secrets", told.secrets.join(", ") || "none"],
            ]}
          />
        </Card>
        <CodeBlock text={variables.join("\n")} label="Copy the variables" />
      </Section>
    </div>
  );
}
