import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { answer, api } from "../../api/client";
import { counted, sentence } from "../../ui/format";
import { JobLink, jobsLink } from "../../ui/links";
import { Card } from "../../ui/Page";
import { StateBadge } from "../../ui/StateBadge";
import { Time } from "../../ui/Time";
import { LogTail } from "../job/log/LogTail";
import styles from "./Failures.module.css";
import type { Workflow } from "./queries";

const FEW = 5;
const LINES = 8;
const FAILED = ["failed", "rejected"];

/** What failed in a workflow, with the end of the first log, and how many jobs did not run for it. */
export function Failures({ workflow }: { workflow: Workflow }) {
  const number = FAILED.reduce((sum, state) => sum + (workflow.counts[state] ?? 0), 0);
  const aborted = workflow.counts.aborted ?? 0;
  const filter = { workflow: workflow.id, state: FAILED };
  const found = useQuery({
    queryKey: ["workflow", workflow.id, "jobs", "failures", number],
    queryFn: ({ signal }) =>
      answer(
        api.GET("/api/v1/jobs", {
          params: { query: { ...filter, sort: "oldest", limit: 100 } },
          signal,
        }),
      ),
    enabled: number > 0,
  });
  const jobs = (found.data?.jobs ?? [])
    .filter((job) => !job.superseded_by)
    .sort((a, b) => (a.finished_at ?? "").localeCompare(b.finished_at ?? ""));
  if (number === 0 || jobs.length === 0) return null;
  return (
    <Card className={styles.failures}>
      <ul aria-label="What failed" className={styles.list}>
        {jobs.slice(0, FEW).map((job, place) => (
          <li key={job.id}>
            <p className={styles.head}>
              <StateBadge state={job.state} plain />
              <strong>
                <JobLink id={job.id}>{job.name ?? `${job.task} ${job.id}`}</JobLink>
              </strong>
              <Time at={job.finished_at} />
            </p>
            <p>{sentence(job.failure?.message ?? job.reason ?? "It gave no reason.")}</p>
            {place === 0 && <LogTail job={job.id} lines={LINES} />}
          </li>
        ))}
      </ul>
      {jobs.length > FEW && (
        <p>
          <Link {...jobsLink(filter)}>All {counted(number, "job")} that failed</Link>
        </p>
      )}
      {aborted > 0 && (
        <p>
          <Link {...jobsLink({ ...filter, state: ["aborted"] })}>{counted(aborted, "job")}</Link>{" "}
          did not run because of {jobs.length === 1 ? "it" : "them"}.
        </p>
      )}
    </Card>
  );
}
