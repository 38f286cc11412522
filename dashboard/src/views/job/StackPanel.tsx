import { useMutation } from "@tanstack/react-query";
import { answer, api, type Schemas } from "../../api/client";
import { inWords } from "../../api/errors";
import { useMay } from "../../api/who";
import { Button } from "../../ui/Button";
import { CodeBlock } from "../../ui/CodeBlock";
import { Section } from "../../ui/Page";
import { Time } from "../../ui/Time";
import styles from "./Job.module.css";

/** Where the function of a running job is: its worker is asked when somebody wants to know. */
export function StackPanel({ job }: { job: Schemas["Job"] }) {
  const may = useMay("read-files", job.namespace);
  const asked = useMutation({
    mutationFn: () =>
      answer(api.GET("/api/v1/jobs/{job}/stack", { params: { path: { job: job.id } } })),
  });
  if (!may || NO_FUNCTIONS.includes(job.task)) return null;
  return (
    <Section
      title="Where it is now"
      actions={
        <Button small icon="refresh" busy={asked.isPending} onClick={() => asked.mutate()}>
          {asked.data ? "Ask again" : "Show the stack"}
        </Button>
      }
    >
      {asked.error && (
        <p role="alert" className={styles.problem}>
          {inWords(asked.error)}
        </p>
      )}
      {asked.data && (
        <>
          <p className={styles.soft}>
            Attempt {asked.data.attempt} on worker {asked.data.worker}, <Time at={asked.data.at} />
          </p>
          {asked.data.threads.map((thread) => (
            <CodeBlock key={thread.name} text={asText(thread)} label="Copy the stack" />
          ))}
        </>
      )}
    </Section>
  );
}

const NO_FUNCTIONS = ["shell", "ffmpeg", "gstreamer", "media"];

function asText(thread: Schemas["StackThread"]): string {
  const frames = thread.frames.map((frame) => {
    const place = `  ${frame.file}:${frame.line} in ${frame.function}`;
    return frame.code ? `${place}\n    ${frame.code}` : place;
  });
  return [thread.name, ...frames].join("\n");
}
