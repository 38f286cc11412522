import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { answer, api } from "../../api/client";
import { useMay } from "../../api/who";
import { CodeBlock } from "../../ui/CodeBlock";
import { ErrorBox } from "../../ui/ErrorBox";
import { Facts } from "../../ui/Facts";
import { SelectField } from "../../ui/Field";
import { Loading } from "../../ui/Loading";
import { Section } from "../../ui/Page";
import { Time } from "../../ui/Time";
import { parametersOf } from "./parameters";
import { StartForm } from "./StartForm";
import styles from "./Templates.module.css";

interface Props {
  name: string;
  namespace: string;
  /** 0: the newest. */
  version: number;
  onVersion: (version: number | undefined) => void;
}

/** One version of a template: what it describes, and a form that starts it. */
export function TemplateDetails({ name, namespace, version, onVersion }: Props) {
  const may = useMay("submit-jobs", namespace);
  const newest = useTemplate(name, namespace, 0);
  const found = useTemplate(name, namespace, version);
  if (found.isPending || newest.isPending) return <Loading rows={4} label="Loading the template" />;
  const failed = found.error ?? newest.error;
  if (failed || !found.data || !newest.data) {
    return <ErrorBox error={failed} onRetry={() => void found.refetch()} />;
  }
  const template = found.data;
  const body: Record<string, unknown> = template.body;
  const description = typeof body.description === "string" ? body.description : undefined;
  const versions = Array.from({ length: newest.data.version }, (_, place) => place + 1).reverse();
  return (
    <div className={styles.columns}>
      <Section
        title={`${template.name}@${template.version}`}
        actions={
          <SelectField
            label="Version"
            hideLabel
            value={template.version}
            onChange={(event) => {
              const chosen = Number(event.target.value);
              onVersion(chosen === newest.data.version ? undefined : chosen);
            }}
          >
            {versions.map((one) => (
              <option key={one} value={one}>
                version {one}
                {one === newest.data.version ? " (newest)" : ""}
              </option>
            ))}
          </SelectField>
        }
      >
        <Facts
          items={[
            ["Description", description],
            ["Namespace", template.namespace],
            ["Priority", template.priority ?? undefined],
            ["Changed", <Time key="changed" at={template.created_at} />],
            ["By", template.created_by],
            [
              "Runs",
              <Link
                key="runs"
                to="/workflows"
                search={{ name: String(body.name ?? template.name) }}
              >
                workflows of this name
              </Link>,
            ],
          ]}
        />
        <CodeBlock text={JSON.stringify(template.body, null, 2)} label="Copy the description" />
      </Section>
      {may && (
        <Section title="Start">
          <StartForm template={template} parameters={parametersOf(template.parameters)} />
        </Section>
      )}
    </div>
  );
}

function useTemplate(name: string, namespace: string, version: number) {
  return useQuery({
    queryKey: ["template", namespace, name, version],
    queryFn: ({ signal }) =>
      answer(
        api.GET("/api/v1/templates/{name}", {
          params: { path: { name }, query: { namespace, version } },
          signal,
        }),
      ),
  });
}
