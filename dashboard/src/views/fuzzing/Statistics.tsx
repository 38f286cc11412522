import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { answer, api, type Schemas } from "../../api/client";
import { API_BASE } from "../../base";
import { Empty } from "../../ui/Empty";
import { ErrorBox } from "../../ui/ErrorBox";
import { count, counted, shortCount } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import { PlainTable } from "../../ui/PlainTable";
import { Sparkline } from "../../ui/Sparkline";
import { Time } from "../../ui/Time";
import { Commit, Cut } from "./Commit";
import styles from "./Fuzzing.module.css";
import { Reached } from "./Reached";

type Statistics = Schemas["FuzzStatistics"];
type Series = Schemas["FuzzSeries"];
type Day = Schemas["FuzzDay"];

/** What fuzzing did over time, by target and engine, and what each commit added. */
export function StatisticsPart({ solver, commit }: { solver: string; commit?: string }) {
  const found = useQuery({
    queryKey: ["fuzz", solver, "statistics"],
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/fuzz/{solver}/statistics", { signal, params: { path: { solver } } })),
    refetchInterval: 60_000,
  });
  if (found.error) return <ErrorBox error={found.error} onRetry={() => void found.refetch()} />;
  const shown = found.data;
  if (!shown) return <Loading />;
  return (
    <>
      {shown.problems.map((text) => (
        <p key={text} className={styles.warning}>
          Seeds of the last run: {text}
        </p>
      ))}
      {shown.report && <ReportLink solver={solver} report={shown.report} />}
      {shown.series.length === 0 && <Empty title="There are no runs yet" />}
      {shown.series.map((series) => (
        <SeriesTable key={workName(series)} solver={solver} series={series} />
      ))}
      {commit && <Reached solver={solver} commit={commit} />}
      {shown.commits.length > 0 && <Commits solver={solver} statistics={shown} />}
    </>
  );
}

function ReportLink({ solver, report }: { solver: string; report: Schemas["FuzzReportInfo"] }) {
  const folder = `${API_BASE}/api/v1/fuzz/${encodeURIComponent(solver)}/report`;
  return (
    <>
      <p>
        <a href={`${folder}/index.html`} target="_blank" rel="noopener noreferrer">
          Coverage report
        </a>{" "}
        <span className={styles.soft}>
          of <Commit hash={report.commit} />, <Time at={report.made_at} />: {figures(report)}
        </span>
      </p>
      {report.targets.length > 0 && (
        <ul aria-label="Coverage by target">
          {report.targets.map((one) => (
            <li key={one.target}>
              {one.page ? (
                <a href={`${folder}/${one.page}`} target="_blank" rel="noopener noreferrer">
                  {one.target}
                </a>
              ) : (
                one.target
              )}{" "}
              <span className={styles.soft}>{one.problem || figures(one)}</span>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

const figures = (
  one: Pick<
    Schemas["FuzzReportInfo"],
    "functions" | "all_functions" | "lines" | "all_lines" | "complete"
  >,
) =>
  `${count(one.functions)} of ${counted(one.all_functions, "function")}, ` +
  `${count(one.lines)} of ${counted(one.all_lines, "line")}` +
  (one.complete ? "" : "; not all inputs ran in time");

/** What ran: a combination of a matrix, or a target with an engine. */
const workName = (one: { combination?: string; target: string; engine: string }) =>
  one.combination
    ? `${one.combination} (${one.target} with ${one.engine})`
    : `${one.target} with ${one.engine}`;

const speed = (one: { executions: number; seconds: number }) =>
  one.seconds > 0 ? one.executions / one.seconds : null;

/** A number of findings, which leads to them. */
function FindingCount({ solver, value }: { solver: string; value: number }) {
  return (
    <Link to="/fuzzing" search={{ solver, tab: "findings" }}>
      {count(value)}
    </Link>
  );
}

function SeriesTable({ solver, series }: { solver: string; series: Series }) {
  const name = workName(series);
  const figures: [string, (day: Day) => number | null, number | null][] = [
    ["Executions", (day) => day.executions, series.executions],
    ["Executions per second", speed, speed(series)],
    ["Coverage", (day) => day.coverage ?? null, series.coverage ?? null],
    ["Corpus", (day) => day.corpus, series.corpus],
    ["New findings", (day) => day.new_findings, series.new_findings],
    ["Fixed findings", (day) => day.closed, series.closed],
  ];
  const days = series.days;
  const [first = "", last = ""] = [days[0]?.day, days.at(-1)?.day];
  const span = first === last ? `on ${first}` : `${first} to ${last}`;
  return (
    <div className={styles.report}>
      <h3>{name}</h3>
      <p className={styles.soft}>
        {counted(series.runs, "run")} {span}
      </p>
      <PlainTable
        label={name}
        head={["Figure", "By day", "Now or in all"]}
        numbers={[2]}
        rows={figures.map(([title, of, total]) => ({
          key: title,
          cells: [
            title,
            <Sparkline
              key="line"
              values={days.map(of)}
              label={`${title} of ${name} by day`}
              width={240}
            />,
            total === null ? (
              "not known"
            ) : title.endsWith("findings") ? (
              <FindingCount key="total" solver={solver} value={total} />
            ) : (
              shortCount(Math.round(total))
            ),
          ],
        }))}
      />
    </div>
  );
}

const plus = (value: number | null | undefined) => (value == null ? "–" : `+${count(value)}`);

function Commits({ solver, statistics }: { solver: string; statistics: Statistics }) {
  return (
    <div className={styles.report}>
      <h3>What each commit's fuzzing added</h3>
      <PlainTable
        label="What each commit's fuzzing added"
        head={[
          "Commit",
          "Last run",
          "Target",
          "Runs",
          "Executions",
          "Coverage",
          "Reached first",
          "Inputs",
          "New findings",
          "Fixed",
        ]}
        numbers={[3, 4, 5, 6, 7, 8, 9]}
        rows={statistics.commits.map((one) => ({
          key: `${one.commit} ${workName(one)}`,
          cells: [
            <Commit key="commit" hash={one.commit} />,
            <Time key="at" at={one.last_run_at} />,
            one.combination || `${one.target}, ${one.engine}`,
            one.unhealthy ? `${count(one.runs)} (${count(one.unhealthy)} unhealthy)` : one.runs,
            shortCount(one.executions),
            one.coverage == null ? "–" : `${count(one.coverage)} (${plus(one.gained)})`,
            <First key="first" solver={solver} one={one} />,
            plus(one.new_inputs),
            <FindingCount key="new" solver={solver} value={one.new_findings} />,
            <FindingCount key="closed" solver={solver} value={one.closed} />,
          ],
        }))}
      />
      <Cut shown={statistics.commits.length} of={statistics.commit_count} noun="commit" />
    </div>
  );
}

/** How much a commit's runs reached first; the link says what. */
function First({ solver, one }: { solver: string; one: Schemas["FuzzCommitRuns"] }) {
  if (one.new_functions == null) return "–";
  const text = `${counted(one.new_functions, "function")}, ${counted(one.new_lines ?? 0, "line")}`;
  if (!one.new_lines && !one.new_functions) return text;
  return (
    <Link to="/fuzzing" search={{ solver, tab: "statistics", commit: one.commit }}>
      {text}
    </Link>
  );
}
