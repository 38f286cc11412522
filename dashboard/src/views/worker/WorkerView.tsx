import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { answer, api } from "../../api/client";
import { isGone } from "../../api/errors";
import { useLiveQueries } from "../../live/useLive";
import { ErrorBox } from "../../ui/ErrorBox";
import { counted } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import { Card, Page, Section } from "../../ui/Page";
import { StateBadge } from "../../ui/StateBadge";
import { Time } from "../../ui/Time";
import { ExplainWorker } from "./ExplainWorker";
import { History } from "./History";
import { Metadata } from "./Metadata";
import { workerRoute } from "./route";
import { WorkerActions } from "./WorkerActions";

/** One worker: what it does, what it did, what it offers, and why it is idle. */
export function WorkerView() {
  const { worker: name } = workerRoute.useParams();
  const found = useQuery({
    queryKey: ["worker", name],
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/fleet/{name}", { signal, params: { path: { name } } })),
  });
  useLiveQueries(["workers"], ["worker", name]);
  const worker = found.data;
  if (!worker || isGone(found.error)) {
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
  const pool = (worker.metadata as Record<string, unknown>)["pool:name"];
  const facts = (
    <>
      <StateBadge state={worker.status} />
      <span>
        {worker.held} of {counted(worker.slots, "slot")} taken
      </span>
      <span>
        seen <Time at={worker.last_seen} />
      </span>
      <span>
        enrolled <Time at={worker.enrolled_at} />
      </span>
      {typeof pool === "string" && (
        <span>
          of pool{" "}
          <Link to="/pools/$pool" params={{ pool }}>
            {pool}
          </Link>
        </span>
      )}
    </>
  );
  return (
    <Page title={worker.name} facts={facts} actions={<WorkerActions worker={worker} />}>
      {worker.reason && (
        <Card>
          <p>{worker.reason}</p>
        </Card>
      )}
      <History worker={worker} />
      <ExplainWorker worker={worker} />
      <Section title="Metadata">
        <Metadata worker={worker} />
      </Section>
    </Page>
  );
}
