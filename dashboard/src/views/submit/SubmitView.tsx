import { useQuery } from "@tanstack/react-query";
import { answer, api } from "../../api/client";
import { useMay } from "../../api/who";
import { Empty } from "../../ui/Empty";
import { ErrorBox } from "../../ui/ErrorBox";
import { SelectField } from "../../ui/Field";
import { Loading } from "../../ui/Loading";
import { Page } from "../../ui/Page";
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
  });
  const templates = useQuery({
    queryKey: ["templates"],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/templates", { signal })),
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
  const task = listed.find((one) => one.name === (search.task ?? "shell"));
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
      {tasks.isPending && <Loading />}
      {tasks.data && (
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
      {!template && task && <TaskForm key={value} task={task} />}
      {tasks.data && !task && !template && (
        <Empty title={`No worker offers the task ${search.task}`}>
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
