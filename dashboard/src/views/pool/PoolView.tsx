import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { answer, api, type Schemas } from "../../api/client";
import { isGone } from "../../api/errors";
import { useLiveQueries } from "../../live/useLive";
import { ErrorBox } from "../../ui/ErrorBox";
import { Figure } from "../../ui/Facts";
import { counted, sentence } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import { WorkerLink } from "../../ui/links";
import { Card, Page, Section } from "../../ui/Page";
import { PlainTable } from "../../ui/PlainTable";
import { StateBadge } from "../../ui/StateBadge";
import { Duration, Time } from "../../ui/Time";
import { Money, settingsOf } from "../pools/settings";
import styles from "./Pool.module.css";
import { PoolActions } from "./PoolActions";
import { PoolPast } from "./PoolPast";
import { poolRoute } from "./route";

type Pool = Schemas["PoolInfo"];

/** One pool: its size against its target, its machines, its costs, and what it would do now. */
export function PoolView() {
  const { pool: name } = poolRoute.useParams();
  const found = useQuery({
    queryKey: ["pools", name],
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/pools/{name}", { signal, params: { path: { name } } })),
  });
  const plan = useQuery({
    queryKey: ["pools", { part: "plan" }], // no pool has this name
    queryFn: ({ signal }) => answer(api.GET("/api/v1/pools/plan", { signal })),
    refetchInterval: 15_000,
  });
  useLiveQueries(["pools"], ["pools", name]);
  const pool = found.data;
  if (!pool || isGone(found.error)) {
    return (
      <Page title={name}>
        {found.error ? (
          <ErrorBox error={found.error} onRetry={() => void found.refetch()} />
        ) : (
          <Loading />
        )}
      </Page>
    );
  }
  const planned = plan.data?.pools.find((one) => one.pool === name);
  return (
    <Page title={name} facts={<Facts pool={pool} />} actions={<PoolActions pool={pool} />}>
      {pool.message && (
        <Card>
          <p>{pool.message}</p>
          {pool.next_try_at && (
            <p className={styles.soft}>
              It tries again <Time at={pool.next_try_at} />.
            </p>
          )}
        </Card>
      )}
      <Figures pool={pool} planned={planned} />
      {planned && (
        <Section title="What it would do now">
          <Card>
            <p>{sentence(planned.reason)}</p>
          </Card>
        </Section>
      )}
      <PoolPast pool={pool} />
      <Section title="Workers now">
        {pool.workers.length === 0 ? (
          <p className={styles.soft}>It has no machines now.</p>
        ) : (
          <Workers pool={pool} />
        )}
      </Section>
    </Page>
  );
}

function Facts({ pool }: { pool: Pool }) {
  const settings = settingsOf(pool);
  return (
    <>
      <StateBadge state={pool.state} />
      <span>{settings.provider}</span>
      <span>
        {settings.least} to {counted(settings.most, "worker")}
      </span>
      <span>
        changed <Time at={pool.updated_at} />
      </span>
    </>
  );
}

function Figures({ pool, planned }: { pool: Pool; planned?: Schemas["PoolPlan"] }) {
  const settings = settingsOf(pool);
  const spent = settings.budgetSeconds
    ? Math.round((pool.seconds_this_month / settings.budgetSeconds) * 100)
    : undefined;
  return (
    <div className={styles.figures}>
      <Figure label={pool.workers.length === 1 ? "worker" : "workers"}>
        <Link to="/workers" search={{ pool: pool.name }}>
          {pool.workers.length}
        </Link>
      </Figure>
      {planned && <Figure label="wanted">{planned.wanted}</Figure>}
      <Figure label="latency now">
        <Link to="/pools" title="The work that waits or runs">
          <Duration seconds={planned?.latency_seconds} />
        </Link>
      </Figure>
      <Figure label="target latency">
        <Duration seconds={settings.targetSeconds} />
      </Figure>
      <Figure label="cost this month">
        <Money value={pool.money_this_month} />
      </Figure>
      <Figure
        label={
          spent === undefined ? "of machines this month, no budget" : `${spent} % of the budget`
        }
      >
        <Duration seconds={pool.seconds_this_month} />
        {settings.budgetSeconds > 0 && (
          <>
            {" of "}
            <Duration seconds={settings.budgetSeconds} />
          </>
        )}
      </Figure>
    </div>
  );
}

function Workers({ pool }: { pool: Pool }) {
  return (
    <PlainTable
      label="Workers of the pool"
      head={["Worker", "State", "Since", "Idle for", "Machine", "Why"]}
      rows={pool.workers.map((worker) => ({
        key: worker.name,
        cells: [
          <WorkerLink key="name" name={worker.name} />,
          <StateBadge key="state" state={worker.state} plain />,
          <Time key="since" at={worker.since} />,
          <Duration key="idle" seconds={worker.idle_seconds} />,
          worker.machine ?? "–",
          worker.reason ?? "",
        ],
      }))}
    />
  );
}
