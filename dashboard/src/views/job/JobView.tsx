import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import { answer, api, type Schemas } from "../../api/client";
import { isGone } from "../../api/errors";
import { useLiveQueries, useLiveState } from "../../live/useLive";
import { useAsOf } from "../../shell/asOf";
import { ErrorBox } from "../../ui/ErrorBox";
import { Loading } from "../../ui/Loading";
import { JobLink, jobsLink, WorkerLink, WorkflowLink } from "../../ui/links";
import { NoSuchNumber, numberIn } from "../../ui/NoSuchNumber";
import { Page } from "../../ui/Page";
import { StateBadge } from "../../ui/StateBadge";
import { Tabs } from "../../ui/Tabs";
import { Elapsed, Time } from "../../ui/Time";
import { History } from "./History";
import styles from "./Job.module.css";
import { JobActions } from "./JobActions";
import { functionOf, isOpen, isWaiting } from "./job";
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
  const asOf = useAsOf();
  const isPast = asOf !== undefined;
  const found = useQuery({
    queryKey: isPast ? ["job", id, "as of", asOf] : ["job", id],
    queryFn: ({ signal }) => {
      const params = { path: { job: id }, query: { as_of: asOf } };
      return answer(api.GET("/api/v1/jobs/{job}", { params, signal }));
    },
    refetchInterval: (query) =>
      !isPast && query.state.data && isOpen(query.state.data)
        ? isLive
          ? LIVE_MS
          : POLL_MS
        : false,
  });
  useLiveQueries([`job:${id}`], ["job", id]);
  const { refetch } = found;
  useEffect(() => {
    if (isLive) void refetch(); // What happened before the stream was open.
  }, [isLive, refetch]);
  if (found.data && !isGone(found.error)) return <Shown job={found.data} isPast={isPast} />;
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

const TABS: readonly { key: TabKey; label: string }[] = [
  { key: "waiting", label: "Why it waits" },
  { key: "overview", label: "Overview" },
  { key: "log", label: "Log" },
  { key: "time", label: "Time" },
  { key: "reproduce", label: "Reproduce" },
  { key: "history", label: "History" },
];

/** What is known of a job at an earlier time; the other parts show the present. */
const PAST_TABS: readonly TabKey[] = ["overview", "history"];

function Shown({ job, isPast }: { job: Job; isPast: boolean }) {
  const search = jobRoute.useSearch();
  const navigate = useNavigate({ from: jobRoute.fullPath });
  const waits = isWaiting(job) && !isPast;
  const tabs = TABS.filter(({ key }) =>
    isPast ? PAST_TABS.includes(key) : key !== "waiting" || waits,
  );
  const fallback: TabKey = waits ? "waiting" : "overview";
  const tab = tabs.find(({ key }) => key === search.tab)?.key ?? fallback;
  function show(change: Partial<JobSearch>): void {
    void navigate({
      search: (before) => ({ ...before, ...change }),
      replace: true,
      resetScroll: false,
    });
  }
  const called = job.name ?? functionOf(job);
  const title = called ? `Job ${job.id}: ${called}` : `Job ${job.id}`;
  return (
    <Page title={title} facts={<HeadFacts job={job} />} actions={<JobActions job={job} />}>
      <Question job={job} />
      {job.superseded_by && (
        <p className={styles.soft}>
          It was retried: <JobLink id={job.superseded_by}>job {job.superseded_by}</JobLink> takes
          its place.
        </p>
      )}
      <Tabs label="Parts of the job" tabs={tabs} value={tab} onChange={(key) => show({ tab: key })}>
        {tab === "overview" && (
          <Overview
            job={job}
            isPast={isPast}
            onAttempt={(attempt) => show({ tab: "log", attempt })}
          />
        )}
        {tab === "log" && (
          <LogView
            job={job.id}
            attempts={job.attempts.filter((one) => !one.handed_back).map((one) => one.number)}
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
