import type { ColumnDef } from "@tanstack/react-table";
import { Fragment } from "react";
import { JobLink, type JobsFilter, NarrowLink, WorkerLink, WorkflowLink } from "../../ui/links";
import { StateBadge } from "../../ui/StateBadge";
import { Elapsed, Time } from "../../ui/Time";
import styles from "./Jobs.module.css";
import type { Job } from "./useJobs";

export interface JobColumn {
  id: string;
  label: string;
  /** Shown unless the person chooses otherwise. */
  isUsual: boolean;
  /** Shown on a phone too. */
  isNarrow?: boolean;
  column: ColumnDef<Job, unknown>;
}

function column(
  id: string,
  label: string,
  width: string,
  cell: (job: Job) => React.ReactNode,
  more: { usual?: boolean; narrow?: boolean; align?: "right" } = {},
): JobColumn {
  return {
    id,
    label,
    isUsual: more.usual ?? true,
    isNarrow: more.narrow,
    column: {
      id,
      header: label,
      cell: ({ row }) => cell(row.original),
      meta: { width, align: more.align },
    },
  };
}

export const COLUMNS: readonly JobColumn[] = [
  column("id", "Job", "76px", (job) => <JobLink id={job.id} />, { narrow: true }),
  column("state", "State", "116px", (job) => <StateBadge state={job.state} plain />, {
    narrow: true,
  }),
  column("name", "Name", "minmax(130px, 3fr)", (job) => <Name job={job} />, { narrow: true }),
  column("queue", "Queue", "minmax(80px, 0.8fr)", (job) => (
    <Narrow by={{ queue: job.queue }}>{job.queue}</Narrow>
  )),
  column(
    "task",
    "Task",
    "minmax(90px, 1fr)",
    (job) => <Narrow by={{ task: job.task }}>{job.task}</Narrow>,
    { usual: false },
  ),
  column("worker", "Worker", "minmax(90px, 1fr)", (job) =>
    job.worker ? <WorkerLink name={job.worker} /> : <Faint>–</Faint>,
  ),
  column("priority", "Priority", "74px", (job) => <span>{job.priority.effective}</span>, {
    align: "right",
    usual: false,
  }),
  column("attempt", "Attempt", "74px", (job) => <span>{job.attempt}</span>, {
    align: "right",
    usual: false,
  }),
  column("created", "Created", "96px", (job) => <Time at={job.created_at} />),
  column(
    "duration",
    "Took",
    "96px",
    (job) => <Elapsed from={job.started_at} to={job.finished_at} />,
    { align: "right" },
  ),
  column("finished", "Ended", "96px", (job) => <Time at={job.finished_at} />, { usual: false }),
  column("workflow", "Workflow", "84px", (job) =>
    job.workflow ? <WorkflowLink id={job.workflow} /> : <Faint>–</Faint>,
  ),
  column(
    "namespace",
    "Namespace",
    "minmax(84px, 0.8fr)",
    (job) => <Narrow by={{ namespace: job.namespace }}>{job.namespace}</Narrow>,
    {
      usual: false,
    },
  ),
  column(
    "submitted_by",
    "Submitted by",
    "minmax(90px, 1fr)",
    (job) =>
      job.submitted_by ? (
        <Narrow by={{ submitted_by: job.submitted_by }}>{job.submitted_by}</Narrow>
      ) : (
        <Faint>–</Faint>
      ),
    { usual: false },
  ),
  column("labels", "Labels", "minmax(90px, 1fr)", (job) => <Labels labels={job.labels} />, {
    usual: false,
  }),
  column("reason", "Reason", "minmax(120px, 1.6fr)", (job) => (
    <span className={styles.soft}>{job.failure?.message ?? job.reason ?? ""}</span>
  )),
];

function Name({ job }: { job: Job }) {
  const command = commandOf(job);
  return (
    <span className={styles.name} title={job.name ?? command}>
      {job.name ? (
        <span className={styles.title}>{job.name}</span>
      ) : (
        <span className={styles.command}>{command}</span>
      )}
      {job.name && command && <span className={styles.soft}>{command}</span>}
    </span>
  );
}

/** Returns what a job runs, in short. */
export function commandOf(job: Job): string {
  const args: unknown = job.args;
  if (typeof args === "object" && args !== null) {
    const argv = (args as { argv?: unknown }).argv;
    if (Array.isArray(argv)) return argv.map(String).join(" ");
    const called = (args as { function?: unknown }).function;
    if (typeof called === "string") return called;
  }
  return job.task;
}

function Labels({ labels }: { labels: Record<string, string> }) {
  return Object.entries(labels).map(([name, value], at) => (
    <Fragment key={name}>
      {at > 0 && ", "}
      <Narrow by={{ label: [`${name}=${value}`] }}>{`${name}=${value}`}</Narrow>
    </Fragment>
  ));
}

function Narrow({ by, children }: { by: JobsFilter; children: string }) {
  return (
    <NarrowLink by={by} className={styles.narrow}>
      {children}
    </NarrowLink>
  );
}

function Faint({ children }: { children: string }) {
  return <span className={styles.soft}>{children}</span>;
}
