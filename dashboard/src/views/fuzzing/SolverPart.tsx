import { useQuery } from "@tanstack/react-query";
import { answer, api, type Schemas } from "../../api/client";
import { ErrorBox } from "../../ui/ErrorBox";
import { Loading } from "../../ui/Loading";
import { Section } from "../../ui/Page";
import { Tabs } from "../../ui/Tabs";
import { Time } from "../../ui/Time";
import { Alarms } from "./Alarms";
import { Builds, onTheirWay } from "./Builds";
import { Coverage } from "./Coverage";
import { Findings } from "./Findings";
import styles from "./Fuzzing.module.css";
import { type FuzzingSearch, type FuzzTab, fuzzingRoute } from "./route";
import { Schedule } from "./Schedule";
import { StatisticsPart } from "./Statistics";

export type FuzzStatus = Schemas["FuzzStatus"];

/** The queue, builds, schedule, findings, statistics and coverage of one solver. */
export function SolverPart({ name, search }: { name: string; search: FuzzingSearch }) {
  const navigate = fuzzingRoute.useNavigate();
  const found = useQuery({
    queryKey: ["fuzz", name],
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/fuzz/{solver}", { signal, params: { path: { solver: name } } })),
    refetchInterval: 30_000,
  });
  const status = found.data;
  const tab = search.tab ?? "findings";
  return (
    <Section title={name}>
      {found.error && <ErrorBox error={found.error} onRetry={() => void found.refetch()} />}
      {!status && !found.error && <Loading />}
      {status && (
        <>
          <p className={styles.soft}>
            {status.bucket}, read <Time at={status.read_at} />; commits checked{" "}
            {status.checked_at ? <Time at={status.checked_at} /> : "never"}
          </p>
          <Alarms status={status} />
          <Tabs<FuzzTab>
            label={`Parts of ${name}`}
            value={tab}
            onChange={(next) =>
              void navigate({ search: { solver: name, tab: next }, replace: true })
            }
            tabs={[
              { key: "findings", label: `Findings ${status.counts.open ?? 0}` },
              { key: "schedule", label: `Schedule ${status.counts.schedule ?? 0}` },
              { key: "builds", label: `Queue and builds ${onTheirWay(status)}` },
              { key: "statistics", label: "Statistics" },
              { key: "coverage", label: "Coverage" },
            ]}
          >
            <div className={styles.panel}>
              {tab === "findings" && <Findings status={status} open={search.finding} />}
              {tab === "schedule" && <Schedule status={status} />}
              {tab === "builds" && <Builds status={status} />}
              {tab === "statistics" && <StatisticsPart solver={name} commit={search.commit} />}
              {tab === "coverage" && <Coverage solver={name} />}
            </div>
          </Tabs>
        </>
      )}
    </Section>
  );
}
