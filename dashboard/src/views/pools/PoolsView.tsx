import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { answer, api, type Schemas } from "../../api/client";
import { useLiveQueries } from "../../live/useLive";
import { Empty } from "../../ui/Empty";
import { ErrorBox } from "../../ui/ErrorBox";
import { sentence } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import { PoolLink } from "../../ui/links";
import { Page, Section } from "../../ui/Page";
import { PlainTable } from "../../ui/PlainTable";
import { StateBadge } from "../../ui/StateBadge";
import { Duration } from "../../ui/Time";
import { poolsRoute } from "./route";
import { Money, settingsOf } from "./settings";
import { Targets } from "./Targets";
import { WorkJobs } from "./WorkJobs";

type Pool = Schemas["PoolInfo"];

/** The pools: how large each is, what it would do now and why, and what it costs. */
export function PoolsView() {
  const search = poolsRoute.useSearch();
  const found = useQuery({
    queryKey: ["pools"],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/pools", { signal })),
  });
  const plan = useQuery({
    queryKey: ["pools", { part: "plan" }], // no pool has this name
    queryFn: ({ signal }) => answer(api.GET("/api/v1/pools/plan", { signal })),
    refetchInterval: 15_000,
  });
  useLiveQueries(["pools"], ["pools"]);
  const pools = found.data?.pools;
  return (
    <Page title="Pools">
      {found.error && <ErrorBox error={found.error} onRetry={() => void found.refetch()} />}
      {!pools && !found.error && <Loading />}
      {pools?.length === 0 && (
        <Empty title="No pools">
          A pool starts and stops machines as jobs need them: <code>windlass pools apply FILE</code>
        </Empty>
      )}
      {pools && pools.length > 0 && <PoolTable pools={pools} plan={plan.data} />}
      {plan.error && <ErrorBox error={plan.error} />}
      {plan.data && plan.data.targets.length > 0 && (
        <Section title="Work that waits or runs">
          <Targets targets={plan.data.targets} />
        </Section>
      )}
      {search.shape && search.shape.length > 0 && <WorkJobs {...search} />}
    </Page>
  );
}

function PoolTable({ pools, plan }: { pools: readonly Pool[]; plan?: Schemas["Plan"] }) {
  return (
    <PlainTable
      label="Pools"
      head={["Pool", "State", "Workers", "Wanted", "Latency", "Target", "This month", "Why"]}
      numbers={[2, 3, 4, 5, 6]}
      rows={pools.map((pool) => {
        const planned = plan?.pools.find((one) => one.pool === pool.name);
        const settings = settingsOf(pool);
        return {
          key: pool.name,
          cells: [
            <PoolLink key="name" name={pool.name} />,
            <StateBadge key="state" state={pool.state} />,
            <Link key="workers" to="/workers" search={{ pool: pool.name }}>
              {pool.workers.length} of {settings.most}
            </Link>,
            <PoolLink key="wanted" name={pool.name}>
              {planned?.wanted ?? "–"}
            </PoolLink>,
            <PoolLink key="latency" name={pool.name}>
              <Duration seconds={planned?.latency_seconds} />
            </PoolLink>,
            <Duration key="target" seconds={settings.targetSeconds} />,
            <PoolLink key="cost" name={pool.name}>
              <Money value={pool.money_this_month} />
            </PoolLink>,
            sentence(pool.message ?? planned?.reason ?? ""),
          ],
        };
      })}
    />
  );
}
