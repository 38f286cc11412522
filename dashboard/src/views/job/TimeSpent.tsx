import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { answer, api, type Schemas } from "../../api/client";
import { ErrorBox } from "../../ui/ErrorBox";
import { counted, duration, exact, sentence } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import { Section } from "../../ui/Page";
import styles from "./TimeSpent.module.css";

type Segment = Schemas["Segment"];

/** Where a job's time went: a line of time by cause, and how much each took. */
export function TimeSpent({ job }: { job: Schemas["Job"] }) {
  const found = useQuery({
    queryKey: ["job", job.id, "time"],
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/jobs/{job}/time", { params: { path: { job: job.id } }, signal })),
  });
  if (found.error) return <ErrorBox error={found.error} />;
  if (!found.data) return <Loading rows={5} />;
  const spent = found.data;
  const begin = Date.parse(spent.since);
  const whole = Math.max(1, Date.parse(spent.until) - begin);
  return (
    <div className={styles.time}>
      <Section
        title={
          job.finished_at
            ? `${duration(spent.total)} from its submission to its end`
            : `${duration(spent.total)} since it was submitted`
        }
      >
        <div className={styles.track}>
          {spent.segments.map((segment) => (
            <span
              key={`${segment.start} ${segment.cause}`}
              className={styles.segment}
              data-cause={segment.cause}
              title={titleOf(segment)}
              style={{
                left: `${(100 * (Date.parse(segment.start) - begin)) / whole}%`,
                width: `max(2px, ${(100_000 * segment.seconds) / whole}%)`,
              }}
            />
          ))}
        </div>
        {spent.left_out > 0 && (
          <p className={styles.note}>
            {counted(spent.left_out, "period")} in the middle {spent.left_out === 1 ? "is" : "are"}{" "}
            left out.
          </p>
        )}
      </Section>
      <table className={styles.table}>
        <caption className="visually-hidden">Where its time went</caption>
        <thead>
          <tr>
            <th scope="col">Cause</th>
            <th scope="col" className={styles.number}>
              Time
            </th>
            <th scope="col" className={styles.number}>
              Share
            </th>
          </tr>
        </thead>
        <tbody>
          {spent.parts.map((part) => (
            <tr key={part.cause}>
              <td>
                <span className={styles.mark} data-cause={part.cause} aria-hidden="true" />
                {part.text}
              </td>
              <td className={styles.number}>
                <Link
                  to="/jobs/$job"
                  params={{ job: String(job.id) }}
                  search={{ tab: "history" }}
                  title="The changes of its state"
                >
                  {duration(part.seconds)}
                </Link>
              </td>
              <td className={styles.number}>
                {spent.total > 0 ? `${Math.round((100 * part.seconds) / spent.total)} %` : "–"}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {spent.notes.map((note) => (
        <p key={note} className={styles.note}>
          {sentence(note)}
        </p>
      ))}
    </div>
  );
}

function titleOf(segment: Segment): string {
  const attempt = segment.attempt === null ? "" : `, attempt ${segment.attempt}`;
  return `${segment.cause.replaceAll("_", " ")}${attempt}: ${duration(segment.seconds)} from ${exact(Date.parse(segment.start))}`;
}
