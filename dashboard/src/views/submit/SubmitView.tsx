import { useQuery } from "@tanstack/react-query";
import { answer, api } from "../../api/client";
import { useMay } from "../../api/who";
import { Empty } from "../../ui/Empty";
import { ErrorBox } from "../../ui/ErrorBox";
import { SelectField } from "../../ui/Field";
import { Loading } from "../../ui/Loading";
import { Page } from "../../ui/Page";
import { taskLike } from "./like";
import { submitRoute } from "./route";
import styles from "./Submit.module.css";
import { TaskForm } from "./TaskForm";
import { TemplateForm } from "./TemplateForm";

/** Submits a job of a task, or starts a template, with the same as text beside it. */
export function SubmitView() {
  const search = submitRoute.useSearch();
  const navigate = submitRoute.useNavigate();
  const allowed = useMay("submit-jobs");
  const tasks = useQuery({
    queryKey: ["tasks"],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/tasks", { signal })),
    staleTime: 30_000,
    // A worker that has just started reports its functions a little later.
    refetchInterval: ({ state: { data } }) =>
      data?.tasks.some((one) => one.name === (search.task ?? "shell")) ? false : 5_000,
  });
  const templates = useQuery({
    queryKey: ["templates"],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/templates", { signal })),
  });
  const like = useQuery({
    queryKey: ["job", search.like],
    queryFn: ({ signal }) => {
      const params = { path: { job: search.like ?? 0 } };
      return answer(api.GET("/api/v1/jobs/{job}", { params, signal }));
    },
    enabled: search.like !== undefined,
  });
  if (!allowed) {
    return (
      <Page title="Submit">
        <Empty title="Your token may not submit jobs">
          <p>Sign in with a token that may, or ask an administrator for one.</p>
        </Empty>
      </Page>
    );
  }
  const listed = tasks.data?.tasks ?? [];
  const wanted = search.task ?? (like.data ? taskLike(like.data, listed) : "shell");
  const task = listed.find((one) => one.name === wanted);
  const isKnown = tasks.data && (search.like === undefined || like.data);
  const template = templates.data?.templates.find(
    (one) =>
      one.name === search.template && (!search.namespace || one.namespace === search.namespace),
  );
  const value = template ? `template ${template.namespace} ${template.name}` : `task ${task?.name}`;
  function choose(text: string): void {
    const [kind, ...rest] = text.split(" ");
    const [namespace, ...name] = rest;
    void navigate({
      search:
        kind === "template" ? { template: name.join(" "), namespace } : { task: rest.join(" ") },
    });
  }
  return (
    <Page title="Submit">
      {tasks.error && <ErrorBox error={tasks.error} onRetry={() => void tasks.refetch()} />}
      {like.error && <ErrorBox error={like.error} onRetry={() => void like.refetch()} />}
      {(tasks.isPending || like.isLoading) && <Loading />}
      {isKnown && (
        <div className={styles.choose}>
          <SelectField
            label="What to run"
            value={value}
            onChange={(event) => choose(event.target.value)}
          >
            <optgroup label="Built-in tasks">
              {listed.filter((one) => one.is_built_in).map(optionOf)}
            </optgroup>
            <optgroup label="Functions of workers">
              {listed.filter((one) => !one.is_built_in).map(optionOf)}
            </optgroup>
            <optgroup label="Templates">
              {(templates.data?.templates ?? []).map((one) => (
                <option
                  key={`${one.namespace} ${one.name}`}
                  value={`template ${one.namespace} ${one.name}`}
                >
                  {one.name} ({one.namespace})
                </option>
              ))}
            </optgroup>
          </SelectField>
        </div>
      )}
      {template && <TemplateForm key={value} template={template} />}
      {isKnown && !template && task && (
        <TaskForm key={`${value} ${search.like}`} task={task} like={like.data} />
      )}
      {isKnown && !task && !template && (
        <Empty title={`No worker offers the task ${wanted}`}>
          <p>Choose another one, or start a worker that can run it.</p>
        </Empty>
      )}
    </Page>
  );
}

function optionOf(task: { name: string; doc: string }) {
  return (
    <option key={task.name} value={`task ${task.name}`}>
      {task.doc ? `${task.name}: ${task.doc}` : task.name}
    </option>
  );
}
