import { Link, useNavigate } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { isGone } from "../../api/errors";
import { ErrorBox } from "../../ui/ErrorBox";
import { Loading } from "../../ui/Loading";
import { WorkflowLink } from "../../ui/links";
import { NoSuchNumber, numberIn } from "../../ui/NoSuchNumber";
import { Page } from "../../ui/Page";
import { StateBadge } from "../../ui/StateBadge";
import { Tabs } from "../../ui/Tabs";
import { Elapsed, Time } from "../../ui/Time";
import { Actions } from "./Actions";
import { ComparePanel } from "./ComparePanel";
import { Failures } from "./Failures";
import { JobsPanel } from "./JobsPanel";
import { ProgressPanel } from "./ProgressPanel";
import { useFollow, useWorkflow, useWorkflowLive, type Workflow } from "./queries";
import { ReactionsPanel } from "./ReactionsPanel";
import { type TabKey, type WorkflowSearch, workflowRoute } from "./route";
import { TimelinePanel } from "./timeline/TimelinePanel";

const GraphPanel = lazy(() => import("./graph/GraphPanel"));

const TAB_LIST: readonly { key: TabKey; label: string }[] = [
  { key: "graph", label: "Graph" },
  { key: "timeline", label: "Timeline" },
  { key: "jobs", label: "Jobs" },
  { key: "compare", label: "Compare" },
  { key: "reactions", label: "Reactions" },
];

export function WorkflowView() {
  const { workflow } = workflowRoute.useParams();
  const id = numberIn(workflow);
  return id === undefined ? <NoSuchNumber kind="workflow" text={workflow} /> : <Found id={id} />;
}

function Found({ id }: { id: number }) {
  const found = useWorkflow(id);
  useWorkflowLive(id);
  // A server that is away for a moment takes nothing from the page.
  if (found.data && !isGone(found.error)) return <Shown workflow={found.data} />;
  return (
    <Page title={`Workflow ${id}`}>
      {found.error ? (
        <ErrorBox error={found.error} onRetry={() => void found.refetch()} />
      ) : (
        <Loading rows={8} label="Loading the workflow" />
      )}
    </Page>
  );
}

function Shown({ workflow }: { workflow: Workflow }) {
  const search = workflowRoute.useSearch();
  const navigate = useNavigate();
  const tab = search.tab ?? "graph";
  useFollow(workflow);
  function change(next: Partial<WorkflowSearch>): void {
    void navigate({
      to: "/workflows/$workflow",
      params: { workflow: String(workflow.id) },
      search: { ...search, ...next },
      replace: true,
    });
  }
  return (
    <Page
      title={`${workflow.name} ${workflow.id}`}
      heading={workflow.name}
      facts={<HeadFacts workflow={workflow} />}
      actions={<Actions workflow={workflow} />}
    >
      <Failures workflow={workflow} />
      <ProgressPanel workflow={workflow} />
      <Tabs
        label="Views of the workflow"
        tabs={TAB_LIST}
        value={tab}
        onChange={(key) => change({ tab: key, group: undefined, state: undefined })}
      >
        {tab === "graph" && (
          <Suspense fallback={<Loading rows={8} label="Loading the graph" />}>
            <GraphPanel workflow={workflow} search={search} onChange={change} />
          </Suspense>
        )}
        {tab === "timeline" && (
          <TimelinePanel workflow={workflow} search={search} onChange={change} />
        )}
        {tab === "jobs" && <JobsPanel workflow={workflow} search={search} onChange={change} />}
        {tab === "compare" && (
          <ComparePanel
            workflow={workflow}
            other={search.with}
            onChoose={(other) => change({ with: other })}
          />
        )}
        {tab === "reactions" && <ReactionsPanel workflow={workflow} />}
      </Tabs>
    </Page>
  );
}

function HeadFacts({ workflow }: { workflow: Workflow }) {
  return (
    <>
      <StateBadge state={workflow.state} />
      <span>Workflow {workflow.id}</span>
      {workflow.run > 1 && <span>run {workflow.run}</span>}
      <span>
        in{" "}
        <Link to="/workflows" search={{ namespace: workflow.namespace }}>
          {workflow.namespace}
        </Link>
      </span>
      <span>
        submitted <Time at={workflow.created_at} />
        {workflow.submitted_by && ` by ${workflow.submitted_by}`}
      </span>
      <span>
        {workflow.finished_at ? "took" : "for"}{" "}
        <Elapsed from={workflow.created_at} to={workflow.finished_at} />
      </span>
      {workflow.template && <TemplateLink workflow={workflow} template={workflow.template} />}
      {workflow.supersedes !== null && (
        <span>
          repeats <WorkflowLink id={workflow.supersedes} />
        </span>
      )}
      {workflow.reason && <span>{workflow.reason}</span>}
    </>
  );
}

/** The template that it was started from, in the version of then: `nightly@3`. */
function TemplateLink({ workflow, template }: { workflow: Workflow; template: string }) {
  const [, name = template, version] = /^(.*)@(\d+)$/.exec(template) ?? [];
  const search = {
    show: name,
    in: workflow.namespace,
    version: version === undefined ? undefined : Number(version),
  };
  return (
    <span>
      from{" "}
      <Link to="/templates" search={search}>
        {template}
      </Link>
    </span>
  );
}
