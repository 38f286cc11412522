import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { answer, api, type Schemas } from "../../api/client";
import { useSlowLive } from "../../live/useSlowLive";
import { useAsOf } from "../../shell/asOf";
import { Empty } from "../../ui/Empty";
import { ErrorBox, FILTER_HINT } from "../../ui/ErrorBox";
import { SelectField } from "../../ui/Field";
import { Loading } from "../../ui/Loading";
import { Page, Section } from "../../ui/Page";
import { ENDED_STATES } from "../../ui/states";
import { AttentionList } from "./AttentionList";
import { Charts } from "./Charts";
import { FigureRow } from "./FigureRow";
import styles from "./Overview.module.css";
import { QueueTable } from "./QueueTable";
import { RangePicker } from "./RangePicker";
import { type OverviewSearch, overviewRoute } from "./route";

export type Overview = Schemas["Overview"];
export type QueueFigures = Schemas["QueueFigures"];

/** The farm at a glance: what needs attention, how deep queues are, what happened and how fast. */
export function OverviewView() {
  const search = overviewRoute.useSearch();
  const navigate = overviewRoute.useNavigate();
  const asOf = useAsOf();
  const query = {
    since: search.since ?? search.range ?? "1h",
    until: search.until,
    namespace: search.namespace,
    as_of: asOf,
  };
  const found = useQuery({
    queryKey: ["overview", query],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/overview", { signal, params: { query } })),
    placeholderData: (before) => before,
    refetchInterval: asOf ? false : 60_000,
  });
  useSlowLive(["jobs", "workers"], ["overview"], ["attention"]);
  const change = (next: OverviewSearch) =>
    void navigate({ search: (before) => ({ ...before, ...next }), replace: true });
  const toJobs = useNavigate();
  const overview = found.data;
  const shown = overview && figuresOf(overview, search.queue);
  return (
    <Page
      title="Overview"
      actions={
        <div className={styles.choices}>
          <NamespaceChoice value={search.namespace} onChange={change} />
          <RangePicker search={search} onChange={change} />
        </div>
      }
    >
      {!asOf && <AttentionList namespace={search.namespace} />}
      {found.error && (
        <ErrorBox error={found.error} hint={FILTER_HINT} onRetry={() => void found.refetch()} />
      )}
      {!overview && !found.error && <Loading />}
      {overview && shown && (
        <>
          <FigureRow overview={overview} search={search} />
          <Section title="Queues">
            {overview.queues.length > 0 ? (
              <QueueTable overview={overview} search={search} />
            ) : (
              <Empty title="No jobs in this time">
                <p>Choose a longer range above.</p>
              </Empty>
            )}
          </Section>
          <Charts
            overview={overview}
            namespace={search.namespace}
            shown={shown}
            onRange={(from, to) => change({ since: iso(from), until: iso(to), range: undefined })}
            onPoint={(at, what) => void toJobs(jobsAt(at, what, overview.step, search))}
          />
        </>
      )}
    </Page>
  );
}

function NamespaceChoice(props: {
  value: string | undefined;
  onChange: (next: OverviewSearch) => void;
}) {
  const found = useQuery({
    queryKey: ["namespaces", "names"],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/namespaces", { signal })),
    staleTime: 60_000,
  });
  const names = found.data?.namespaces ?? [];
  if (names.length < 2 && !props.value) return null;
  return (
    <SelectField
      label="Namespace"
      hideLabel
      value={props.value ?? ""}
      onChange={(event) => props.onChange({ namespace: event.target.value || undefined })}
    >
      <option value="">All namespaces</option>
      {names.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </SelectField>
  );
}

/** Returns the figures of the chosen queue, or of all together. */
function figuresOf(overview: Overview, queue: string | undefined): QueueFigures {
  return overview.queues.find((one) => one.queue === queue) ?? overview.total;
}

/** Returns where the jobs behind a point of a chart are. */
function jobsAt(
  at: number,
  what: "there" | "ended" | "failed",
  step: number,
  { queue, namespace }: OverviewSearch,
) {
  const own = { queue, namespace };
  if (what === "there") return { to: "/jobs", search: { ...own, as_of: iso(at) } } as const;
  const state = what === "failed" ? ["failed"] : ENDED_STATES;
  const search = { ...own, state, since: iso(at), until: iso(at + step) };
  return { to: "/jobs", search } as const;
}

function iso(seconds: number): string {
  return new Date(seconds * 1000).toISOString();
}
