import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { answer, api } from "../../api/client";
import { Empty } from "../../ui/Empty";
import { ErrorBox } from "../../ui/ErrorBox";
import { Loading } from "../../ui/Loading";
import { JobLink } from "../../ui/links";
import { Section } from "../../ui/Page";
import { PlainTable } from "../../ui/PlainTable";
import { StateBadge } from "../../ui/StateBadge";
import { Time } from "../../ui/Time";
import type { PoolsSearch } from "./route";

const MAX_COUNT = 200; // jobs that one answer has

/** The jobs behind a number of the plan. */
export function WorkJobs({ shape = [], state = "queued" }: PoolsSearch) {
  const found = useQuery({
    queryKey: ["pools", { part: "jobs", shape, state }], // no pool has this name
    queryFn: ({ signal }) =>
      answer(
        api.GET("/api/v1/pools/plan/jobs", {
          signal,
          params: { query: { shape: shape.map(Number), state } },
        }),
      ),
    refetchInterval: 15_000,
  });
  const close = (
    <Link to="/pools" search={{}} resetScroll={false}>
      Close
    </Link>
  );
  const jobs = found.data?.jobs;
  return (
    <Section
      title={state === "queued" ? "Jobs that wait for a worker" : "Jobs that run"}
      actions={close}
    >
      {found.error && <ErrorBox error={found.error} onRetry={() => void found.refetch()} />}
      {!jobs && !found.error && <Loading />}
      {jobs?.length === 0 && (
        <Empty title={state === "queued" ? "None of them waits now" : "None of them runs now"} />
      )}
      {jobs && jobs.length > 0 && (
        <PlainTable
          label="Jobs of this work"
          head={["Job", "Name", "State", "Namespace", "Queue", "Created"]}
          rows={jobs.map((job) => ({
            key: String(job.id),
            cells: [
              <JobLink key="id" id={job.id} />,
              job.name ?? job.task,
              <StateBadge key="state" state={job.state} plain />,
              job.namespace,
              job.queue,
              <Time key="created" at={job.created_at} />,
            ],
          }))}
        />
      )}
      {jobs && jobs.length >= MAX_COUNT && <p>These are the first {MAX_COUNT}.</p>}
    </Section>
  );
}
