import { useQuery } from "@tanstack/react-query";
import { answer, api, type Schemas } from "../../api/client";
import { JobLink } from "../../ui/links";
import { StateBadge } from "../../ui/StateBadge";
import { Time } from "../../ui/Time";
import styles from "./Job.module.css";

/** The jobs that a job supersedes and those that supersede it. */
export function Chain({ job }: { job: Schemas["Job"] }) {
  const linked = job.supersedes !== null || job.superseded_by !== null;
  const found = useQuery({
    queryKey: ["job", job.id, "chain"],
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/jobs/{job}/chain", { params: { path: { job: job.id } }, signal })),
    enabled: linked,
  });
  if (!linked || !found.data) return null;
  return (
    <div className={styles.chain}>
      <h3>Retried by hand</h3>
      <ol className={styles.linked}>
        {found.data.jobs.map((one) => (
          <li key={one.id} aria-current={one.id === job.id ? "true" : undefined}>
            {one.id === job.id ? <strong>{one.id}</strong> : <JobLink id={one.id} />}{" "}
            <StateBadge state={one.state} plain /> <Time at={one.created_at} />
          </li>
        ))}
        {found.data.more && <li>and more, which were removed or are not shown</li>}
      </ol>
    </div>
  );
}
