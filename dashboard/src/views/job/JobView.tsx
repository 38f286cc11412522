import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import { answer, api, type Schemas } from "../../api/client";
import { useLiveQueries, useLiveState } from "../../live/useLive";
import { ErrorBox } from "../../ui/ErrorBox";
import { Loading } from "../../ui/Loading";
import { jobsLink, WorkerLink, WorkflowLink } from "../../ui/links";
import { NoSuchNumber, numberIn } from "../../ui/NoSuchNumber";
import { Page } from "../../ui/Page";
import { StateBadge } from "../../ui/StateBadge";
import { Tabs } from "../../ui/Tabs";
import { Elapsed, Time } from "../../ui/Time";
import { History } from "./History";
import styles from "./Job.module.css";
import { JobActions } from "./JobActions";
import { isOpen, isWaiting } from "./job";
import { LogView } from "./log/LogView";
import { Overview } from "./Overview";
import { Question } from "./Question";
import { Reproduce } from "./Reproduce";
import { type JobSearch, jobRoute, type TabKey } from "./route";
import { TimeSpent } from "./TimeSpent";
import { Waiting } from "./Waiting";

type Job = Schemas["Job"];

const LIVE_MS = 15_000; // The stream says sooner what changed; estimates age.
const POLL_MS = 2_000;

export function JobView() {
  const { job } = jobRoute.useParams();
  const id = numberIn(job);
  return id === undefined ? <NoSuchNumber kind="job" text={job} /> : <Found id={id} />;
}

function Found({ id }: { id: number }) {
  const isLive = useLiveState() === "on";
  const found = useQuery({
    queryKey: ["job", id],
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/jobs/{job}", { params: { path: { job: id } }, signal })),
    refetchInterval: (query) =>
      query.state.data && isOpen(query.state.data) ? (isLive ? LIVE_MS : POLL_MS) : false,
  });
  useLiveQueries([`job:${id}`], ["job", id]);
  const { refetch } = found;
  useEffect(() => {
    if (isLive) void refetch(); // What happened before the stream was open.
  }, [isLive, refetch]);
  if (found.data) return <Shown job={found.data} />;
  return (
    <Page title={`Job ${id}`}>
      {found.error ? (
        <ErrorBox error={found.error} onRetry={() => void found.refetch()} />
      ) : (
        <Loading rows={8} />
      )}
    </Page>
  );
}

function Shown({ job }: { job: Job }) {
  const search = jobRoute.useSearch();
  const navigate = useNavigate({ from: jobRoute.fullPath });
  const waits = isWaiting(job);
  const fallback: TabKey = waits ? "waiting" : "overview";
  const chosen = search.tab ?? fallback;
  const tab = chosen === "waiting" && !waits ? "overview" : chosen;
  function show(change: Partial<JobSearch>): void {
    void navigate({
      search: (before) => ({ ...before, ...change }),
      replace: true,
      resetScroll: false,
    });
  }
  const tabs: { key: TabKey; label: string }[] = [
    ...(waits ? [{ key: "waiting" as const, label: "Why it waits" }] : []),
    { key: "overview", label: "Overview" },
    { key: "log", label: "Log" },
    { key: "time", label: "Time" },
    { key: "reproduce", label: "Reproduce" },
    { key: "history", label: "History" },
  ];
  const title = job.name ? `Job ${job.id}: ${job.name}` : `Job ${job.id}`;
  return (
    <Page title={title} facts={<HeadFacts job={job} />} actions={<JobActions job={job} />}>
      <Question job={job} />
      <Tabs label="Parts of the job" tabs={tabs} value={tab} onChange={(key) => show({ tab: key })}>
        {tab === "overview" && (
          <Overview job={job} onAttempt={(attempt) => show({ tab: "log", attempt })} />
        )}
        {tab === "log" && (
          <LogView
            job={job.id}
            attempts={job.attempts.map((attempt) => attempt.number)}
            attempt={search.attempt}
            line={search.line}
            onLine={(line) => show({ line })}
            onAttempt={(attempt) => show({ attempt, line: undefined })}
          />
        )}
        {tab === "waiting" && <Waiting job={job} />}
        {tab === "time" && <TimeSpent job={job} />}
        {tab === "reproduce" && <Reproduce job={job} />}
        {tab === "history" && <History job={job} />}
      </Tabs>
    </Page>
  );
}

function HeadFacts({ job }: { job: Job }) {
  return (
    <span className={styles.head}>
      <StateBadge state={job.state} />
      <Link {...jobsLink({ task: job.task })}>{job.task}</Link>
      <span>
        queue <Link {...jobsLink({ queue: job.queue })}>{job.queue}</Link>
      </span>
      {job.namespace !== "default" && (
        <span>
          namespace <Link {...jobsLink({ namespace: job.namespace })}>{job.namespace}</Link>
        </span>
      )}
      {job.workflow !== null && (
        <span>
          workflow <WorkflowLink id={job.workflow} />
        </span>
      )}
      {job.worker && (
        <span>
          worker <WorkerLink name={job.worker} />
        </span>
      )}
      <span>
        submitted <Time at={job.created_at} />
        {job.submitted_by && (
          <>
            {" by "}
            <Link {...jobsLink({ submitted_by: job.submitted_by })}>{job.submitted_by}</Link>
          </>
        )}
      </span>
      {job.started_at && (
        <span>
          {job.finished_at ? "ran" : "running for"}{" "}
          <Elapsed from={job.started_at} to={job.finished_at} />
        </span>
      )}
    </span>
  );
}
