import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { answer, api } from "../../api/client";
import { useMay } from "../../api/who";
import { Button } from "../../ui/Button";
import { CodeBlock } from "../../ui/CodeBlock";
import { Empty } from "../../ui/Empty";
import { ErrorBox } from "../../ui/ErrorBox";
import { Facts } from "../../ui/Facts";
import { exact } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import { notify, notifyError } from "../../ui/Notices";
import { Section } from "../../ui/Page";
import { Time } from "../../ui/Time";
import { RunsTable } from "./RunsTable";
import styles from "./Schedules.module.css";
import type { Schedule } from "./SchedulesView";

interface Props {
  name: string;
  namespace: string;
}

/** One schedule: its next runs, what it starts, and what became of its slots. */
export function ScheduleDetails({ name, namespace }: Props) {
  const found = useQuery({
    queryKey: ["schedule", namespace, name],
    queryFn: ({ signal }) =>
      answer(
        api.GET("/api/v1/schedules/{name}", {
          params: { path: { name }, query: { namespace } },
          signal,
        }),
      ),
  });
  if (found.isPending) return <Loading rows={4} label="Loading the schedule" />;
  if (!found.data) {
    return <ErrorBox error={found.error} onRetry={() => void found.refetch()} />;
  }
  const schedule = found.data;
  return (
    <>
      <Section title={schedule.name} actions={<Actions schedule={schedule} />}>
        <Facts
          items={[
            ["When", schedule.words],
            [schedule.cron ? "Cron line" : "Interval", <code key="times">{times(schedule)}</code>],
            ["Next runs", <Coming key="coming" schedule={schedule} />],
            ["If a run is still open", OVERLAPS[schedule.overlap] ?? schedule.overlap],
            ["If slots were missed", CATCH_UPS[schedule.catch_up] ?? schedule.catch_up],
            ["Starts", <Starts key="starts" schedule={schedule} />],
            ["Created", <Created key="created" schedule={schedule} />],
          ]}
        />
      </Section>
      <Section title="History of slots">
        {schedule.runs.length === 0 ? (
          <Empty title="It has not come due yet">
            <p>Its runs are listed here from the first one on.</p>
          </Empty>
        ) : (
          <RunsTable runs={schedule.runs} />
        )}
      </Section>
    </>
  );
}

const OVERLAPS: Record<string, string> = {
  allow: "both run",
  skip: "the slot is skipped",
  queue: "the slot waits",
  cancel: "the open run is canceled",
};

const CATCH_UPS: Record<string, string> = {
  none: "they stay missed",
  last: "the last one runs",
  all: "all of them run",
};

function times(schedule: Schedule): string {
  if (schedule.cron) return `${schedule.cron} (${schedule.zone})`;
  return `${schedule.every}, counted from its creation`;
}

function Coming({ schedule }: { schedule: Schedule }) {
  if (schedule.paused) return <span>none while it is paused</span>;
  if (schedule.coming.length === 0) return <span>none</span>;
  return (
    <ul className={styles.coming}>
      {schedule.coming.map((slot) => (
        <li key={slot}>
          <Time at={slot} /> <span className={styles.exact}>{exact(Date.parse(slot))}</span>
        </li>
      ))}
    </ul>
  );
}

function Starts({ schedule }: { schedule: Schedule }) {
  const parameters = Object.keys(schedule.parameters).length > 0;
  if (schedule.template) {
    return (
      <>
        <Link
          to="/templates"
          search={{ show: schedule.template.split("@")[0], in: schedule.namespace }}
        >
          template {schedule.template}
        </Link>
        {parameters && <CodeBlock text={JSON.stringify(schedule.parameters, null, 2)} />}
      </>
    );
  }
  return <CodeBlock text={JSON.stringify(schedule.jobs, null, 2)} />;
}

function Created({ schedule }: { schedule: Schedule }) {
  return (
    <span>
      <Time at={schedule.created_at} />
      {schedule.created_by && ` by ${schedule.created_by}`}
    </span>
  );
}

function Actions({ schedule }: { schedule: Schedule }) {
  const may = useMay("change-plans", schedule.namespace);
  const client = useQueryClient();
  const [busy, setBusy] = useState(false);
  if (!may) return null;
  const options = {
    params: { path: { name: schedule.name }, query: { namespace: schedule.namespace } },
  };
  async function act(call: () => Promise<string>): Promise<void> {
    setBusy(true);
    try {
      notify(await call());
      await client.invalidateQueries({ queryKey: ["schedules"] });
      await client.invalidateQueries({ queryKey: ["schedule"] });
    } catch (problem) {
      notifyError(problem);
    } finally {
      setBusy(false);
    }
  }
  async function pause(): Promise<string> {
    if (schedule.paused) {
      await answer(api.POST("/api/v1/schedules/{name}/resume", options));
      return `Resumed ${schedule.name}`;
    }
    await answer(api.POST("/api/v1/schedules/{name}/pause", options));
    return `Paused ${schedule.name}`;
  }
  async function run(): Promise<string> {
    const done = await answer(api.POST("/api/v1/schedules/{name}/run", options));
    if (done.workflow === null) return `${schedule.name}: ${done.reason ?? done.state}`;
    return `Started workflow ${done.workflow}`;
  }
  return (
    <div className={styles.actions}>
      <Button icon="play" busy={busy} onClick={() => void act(run)}>
        Run now
      </Button>
      <Button icon={schedule.paused ? "play" : "pause"} busy={busy} onClick={() => void act(pause)}>
        {schedule.paused ? "Resume" : "Pause"}
      </Button>
    </div>
  );
}
