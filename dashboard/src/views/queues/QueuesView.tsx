import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { answer, api, type Schemas } from "../../api/client";
import { useMay } from "../../api/who";
import { useLiveQueries } from "../../live/useLive";
import { useSlowLive } from "../../live/useSlowLive";
import { Button } from "../../ui/Button";
import { ConfirmDialog } from "../../ui/Dialog";
import { Empty } from "../../ui/Empty";
import { ErrorBox } from "../../ui/ErrorBox";
import { TextField } from "../../ui/Field";
import { FilterBar } from "../../ui/FilterBar";
import { count } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import { JobCount, jobsLink } from "../../ui/links";
import { notify, notifyError } from "../../ui/Notices";
import { Page } from "../../ui/Page";
import { PlainTable } from "../../ui/PlainTable";
import { StateBadge } from "../../ui/StateBadge";
import { LimitsDialog } from "./LimitsDialog";
import { queuesRoute } from "./route";

type Queue = Schemas["QueueInfo"];

const MOST_SHOWN = 200; // Rows of the table; whoever submits jobs may name any number of queues.

/** The queues: how many jobs wait in each, what runs, and what limits them. */
export function QueuesView() {
  const search = queuesRoute.useSearch();
  const navigate = queuesRoute.useNavigate();
  const found = useQuery({
    queryKey: ["queues"],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/queues", { signal })),
  });
  const topics = ["queues", "jobs"];
  const many = (found.data?.queues.length ?? 0) > MOST_SHOWN;
  useLiveQueries(many ? [] : topics, ["queues"]);
  useSlowLive(many ? topics : [], ["queues"]);
  const wanted = (search.name ?? "").toLowerCase();
  const queues = found.data?.queues.filter((one) => one.name.toLowerCase().includes(wanted));
  return (
    <Page title="Queues">
      <FilterBar>
        <TextField
          label="Name"
          hideLabel
          placeholder="Part of a name"
          value={search.name ?? ""}
          onChange={(event) =>
            void navigate({ search: { name: event.target.value || undefined }, replace: true })
          }
        />
      </FilterBar>
      {found.error && <ErrorBox error={found.error} onRetry={() => void found.refetch()} />}
      {!queues && !found.error && <Loading />}
      {queues?.length === 0 && (
        <Empty title="No queue">A queue is there once a job has named it.</Empty>
      )}
      {queues && queues.length > MOST_SHOWN && (
        <p role="status">
          {`${MOST_SHOWN} of ${count(queues.length)} queues: the paused ones, and those in which `}
          most jobs wait. A part of a name finds the others.
        </p>
      )}
      {queues && queues.length > 0 && <QueueTable queues={fewest(queues)} />}
    </Page>
  );
}

/** Returns as many queues as a page can show: the paused ones first, then the deepest. */
function fewest(queues: readonly Queue[]): readonly Queue[] {
  if (queues.length <= MOST_SHOWN) return queues;
  const weight = (queue: Queue) => (queue.paused ? Number.MAX_SAFE_INTEGER : queue.depth);
  return [...queues].sort((a, b) => weight(b) - weight(a)).slice(0, MOST_SHOWN);
}

/** Of queues without a limit the overview knows how many run, as long as it lists them. */
function useRunning(): ReadonlyMap<string, number> {
  const found = useQuery({
    queryKey: ["overview", "queues"],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/overview", { signal })),
  });
  return new Map(
    (found.data?.queues ?? []).flatMap((one) =>
      one.queue === null ? [] : [[one.queue, one.now.running ?? 0] as const],
    ),
  );
}

function shownRunning(running: number | undefined): string {
  return running === undefined ? "show" : count(running);
}

function QueueTable({ queues }: { queues: readonly Queue[] }) {
  const allowed = useMay("manage-queues");
  const running = useRunning();
  return (
    <PlainTable
      label="Queues"
      head={["Queue", "Queued", "Running", "Weight", "At most", "For each worker", "Isolation", ""]}
      numbers={[1, 2, 3, 4, 5]}
      rows={queues.map((queue) => ({
        key: queue.name,
        cells: [
          <>
            <Link {...jobsLink({ queue: queue.name })}>{queue.name}</Link>{" "}
            {queue.paused && <StateBadge state="paused" />}
          </>,
          <JobCount
            key="queued"
            value={queue.depth}
            filter={{ queue: queue.name, state: ["queued"] }}
          />,
          <Link key="running" {...jobsLink({ queue: queue.name, state: ["running"] })}>
            {shownRunning(queue.running ?? running.get(queue.name))}
          </Link>,
          queue.weight,
          queue.max_running || "any number",
          queue.max_per_worker || "any number",
          queue.isolation ?? "–",
          allowed ? <QueueActions key="actions" queue={queue} /> : null,
        ],
      }))}
    />
  );
}

function QueueActions({ queue }: { queue: Queue }) {
  const client = useQueryClient();
  const [asking, setAsking] = useState<"pause" | "limits">();
  const params = { path: { name: queue.name } };
  async function pause(): Promise<void> {
    await answer(api.POST("/api/v1/queues/{name}/pause", { params }));
    notify(`Queue ${queue.name} is paused`);
    await client.invalidateQueries({ queryKey: ["queues"] });
  }
  async function resume(): Promise<void> {
    try {
      await answer(api.POST("/api/v1/queues/{name}/resume", { params }));
      notify(`Queue ${queue.name} goes on`);
      await client.invalidateQueries({ queryKey: ["queues"] });
    } catch (problem) {
      notifyError(problem);
    }
  }
  return (
    <>
      {queue.paused ? (
        <Button small icon="play" aria-label={`Resume ${queue.name}`} onClick={() => void resume()}>
          Resume
        </Button>
      ) : (
        <Button
          small
          icon="pause"
          aria-label={`Pause ${queue.name}`}
          onClick={() => setAsking("pause")}
        >
          Pause
        </Button>
      )}
      <Button small aria-label={`Limits of ${queue.name}`} onClick={() => setAsking("limits")}>
        Limits
      </Button>
      {asking === "pause" && (
        <ConfirmDialog
          title={`Pause ${queue.name}?`}
          confirm="Pause"
          onConfirm={pause}
          onClose={() => setAsking(undefined)}
        >
          <p>Workers get no more jobs from it. Jobs that run go on.</p>
        </ConfirmDialog>
      )}
      {asking === "limits" && <LimitsDialog queue={queue} onClose={() => setAsking(undefined)} />}
    </>
  );
}
