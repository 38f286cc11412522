import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Schemas } from "../../api/client";
import { API_BASE } from "../../base";
import { Bytes } from "../../ui/Bytes";
import { CodeBlock } from "../../ui/CodeBlock";
import { Facts } from "../../ui/Facts";
import { duration } from "../../ui/format";
import { JobLink, jobsLink } from "../../ui/links";
import { Card, Section } from "../../ui/Page";
import { StateBadge } from "../../ui/StateBadge";
import { Time } from "../../ui/Time";
import { Told } from "../../ui/Told";
import { Attempts } from "./Attempts";
import { Chain } from "./Chain";
import { Estimate, NearTimeout } from "./Estimate";
import { explained } from "./exitCodes";
import styles from "./Job.module.css";
import { isOpen, pretty } from "./job";
import { LogTail } from "./log/LogTail";
import { ProgressBar } from "./ProgressBar";
import { StackPanel } from "./StackPanel";
import { Steps } from "./Steps";

type Job = Schemas["Job"];

interface Props {
  job: Job;
  /** It is shown as it was; what it is linked with is known for the present only. */
  isPast: boolean;
  onAttempt: (attempt: number) => void;
}

export function Overview({ job, isPast, onAttempt }: Props) {
  return (
    <div className={styles.stack}>
      <Outcome job={job} isPast={isPast} />
      {job.progress !== null && job.progress !== undefined && (
        <ProgressBar progress={job.progress} />
      )}
      {job.attempts.length > 0 && (
        <Section title="Attempts">
          <Attempts job={job} onAttempt={onAttempt} />
        </Section>
      )}
      {job.state === "running" && !isPast && <StackPanel job={job} />}
      <div className={styles.columns}>
        <Section title="Arguments">
          <CodeBlock text={pretty(job.args)} label="Copy the arguments" />
        </Section>
        <Section title="Result">
          {job.result === null || job.result === undefined ? (
            <p className={styles.soft}>{isOpen(job) ? "Not yet." : "None."}</p>
          ) : (
            <CodeBlock text={pretty(job.result)} label="Copy the result" />
          )}
        </Section>
      </div>
      <Artifacts job={job} />
      {job.steps.length > 0 && (
        <Section title="Steps">
          <Steps steps={job.steps} />
        </Section>
      )}
      <div className={styles.columns}>
        <Section title="What it asks for">
          <Card>
            <Facts items={needsOf(job)} />
          </Card>
        </Section>
        {!isPast && (
          <Section title="Related">
            <Card>
              <Facts items={relatedTo(job)} />
              <Chain job={job} />
            </Card>
          </Section>
        )}
      </div>
    </div>
  );
}

function Outcome({ job, isPast }: { job: Job; isPast: boolean }) {
  const failed = job.failure;
  const trace = failed?.exception?.traceback;
  const more = beyond(job.reason, failed?.message);
  return (
    <>
      {(failed || job.reason) && (
        <Card className={failed && job.state !== "canceled" ? styles.failure : ""}>
          {failed && (
            <p>
              <Link {...jobsLink({ failure: failed.class })}>{failed.class}</Link>
              {failed.message ? `: ${failed.message}` : ""}
              {job.exit_code !== null &&
                !failed.message?.includes(`exit code ${job.exit_code}`) &&
                ` (exit code ${job.exit_code})`}
            </p>
          )}
          {more && (
            <p>
              <Told text={more} />
            </p>
          )}
          {job.exit_code !== null && explained(job.exit_code) && <p>{explained(job.exit_code)}</p>}
          {trace && <CodeBlock text={trace} label="Copy the traceback" />}
          {failed && !trace && !isPast && <LogTail job={job.id} />}
        </Card>
      )}
      {job.state === "running" && job.timeout !== null && job.started_at && job.timeout_at && (
        <NearTimeout timeout={job.timeout} from={job.started_at} to={job.timeout_at} />
      )}
      <Estimate job={job} />
    </>
  );
}

/** Returns what a reason says more than the message that it begins with. */
function beyond(reason: string | null, message: string | null | undefined): string | undefined {
  if (!reason || reason === message) return undefined;
  return message && reason.startsWith(`${message}: `) ? reason.slice(message.length + 2) : reason;
}

function Artifacts({ job }: { job: Job }) {
  if (job.artifacts.length === 0) return null;
  return (
    <Section title="Artifacts">
      <ul className={styles.files}>
        {job.artifacts.map((file) => (
          <li key={file.name}>
            <a href={artifactAddress(job.id, file.name)} download={file.name}>
              {file.name}
            </a>
            <span className={styles.soft}>
              <Bytes value={file.size} />
            </span>
            <code className={styles.digest} title={file.sha256}>
              {file.sha256.slice(0, 12)}
            </code>
          </li>
        ))}
      </ul>
    </Section>
  );
}

function artifactAddress(job: number, name: string): string {
  return `${API_BASE}/api/v1/jobs/${job}/artifacts/${name.split("/").map(encodeURIComponent).join("/")}`;
}

function needsOf(job: Job): [string, ReactNode][] {
  const resources = Object.entries(job.resources).map(([name, amount]) => `${name}=${amount}`);
  const labels = Object.entries(job.labels).map(([name, value]) => `${name}=${value}`);
  const { base, adjustment, effective } = job.priority;
  const rows: [string, ReactNode][] = [
    ["requires", job.requires.map(inWords).join(", ") || undefined],
    ["resources", resources.join(", ") || undefined],
    ["prefers", job.prefers.join(", ") || undefined],
    ["secrets", job.secrets.join(", ") || undefined],
    ["priority", adjustment ? `${effective} (${base} and ${adjustment})` : effective],
    ["timeout", timeoutOf(job)],
    ["retries", `${job.retry_count} of ${job.max_retries} used`],
    ["not before", job.not_before ? <Time key="time" at={job.not_before} /> : undefined],
    ["start before", job.start_before ? <Time key="time" at={job.start_before} /> : undefined],
    ["finish before", job.finish_before ? <Time key="time" at={job.finish_before} /> : undefined],
    ["key", job.key ?? undefined],
    [
      "labels",
      labels.length > 0 ? (
        <Link key="labels" {...jobsLink({ label: labels })}>
          {labels.join(", ")}
        </Link>
      ) : undefined,
    ],
    [
      "most memory",
      job.peak_memory === null ? undefined : <Bytes key="memory" value={job.peak_memory} />,
    ],
    ["suggestion", job.suggestions.join("; ") || undefined],
  ];
  const known = new Set([...rows.map(([name]) => name), ...ELSEWHERE]);
  const others = Object.entries(job.options).map(([name, text]): [string, ReactNode] => [
    name.replaceAll("_", " "),
    text,
  ]);
  return [...rows, ...others.filter(([name]) => !known.has(name))];
}

/** The options that other parts of the page show. */
const ELSEWHERE = ["name", "queue", "namespace", "workflow", "after", "after any"];

function timeoutOf(job: Job): string | undefined {
  if (job.timeout === null) return job.idle_timeout === null ? "none" : undefined;
  const length = duration(job.timeout);
  if (job.timeout_from === "default") return `${length}, the default; --timeout to change`;
  if (job.timeout_from === "queue") return `${length}, as its queue says; --timeout to change`;
  return job.timeout_from === "media" ? `${length}, by the length of its media` : length;
}

const FUNCTION = "functions:missing!=";

/** Returns a requirement as people read it: what a function needs is the function. */
function inWords(clause: string): string {
  return clause.startsWith(FUNCTION) ? `function ${clause.slice(FUNCTION.length)}` : clause;
}

function relatedTo(job: Job): [string, ReactNode][] {
  return [
    ["waits for", <Linked key="waits" jobs={job.dependencies} />],
    ["needed by", <Linked key="needed" jobs={job.dependents} more={job.dependents_more} />],
    [
      "workflow",
      job.workflow === null ? (
        "none"
      ) : (
        <Link key="workflow" {...jobsLink({ workflow: job.workflow })}>
          all jobs of workflow {job.workflow}
        </Link>
      ),
    ],
  ];
}

function Linked({ jobs, more = false }: { jobs: Schemas["LinkedJob"][]; more?: boolean }) {
  if (jobs.length === 0) return "none";
  return (
    <ul className={styles.linked}>
      {jobs.map((linked) => (
        <li key={linked.job}>
          <JobLink id={linked.job} /> <StateBadge state={linked.state} plain />
        </li>
      ))}
      {more && <li>and more</li>}
    </ul>
  );
}
