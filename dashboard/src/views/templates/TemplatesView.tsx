import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import type { ColumnDef } from "@tanstack/react-table";
import { answer, api, type Schemas } from "../../api/client";
import { useLiveQueries } from "../../live/useLive";
import { DataTable } from "../../ui/DataTable";
import { Empty } from "../../ui/Empty";
import { ErrorBox } from "../../ui/ErrorBox";
import { Loading } from "../../ui/Loading";
import { Page } from "../../ui/Page";
import { Time } from "../../ui/Time";
import { type TemplatesSearch, templatesRoute } from "./route";
import { TemplateDetails } from "./TemplateDetails";
import styles from "./Templates.module.css";

export type Template = Schemas["Template"];

export function TemplatesView() {
  const search = templatesRoute.useSearch();
  const navigate = useNavigate();
  const found = useQuery({
    queryKey: ["templates", search.namespace ?? ""],
    queryFn: ({ signal }) =>
      answer(
        api.GET("/api/v1/templates", {
          params: { query: { namespace: search.namespace } },
          signal,
        }),
      ),
  });
  useLiveQueries(["templates"], ["templates"], ["template"]);
  const go = (next: TemplatesSearch) => void navigate({ to: "/templates", search: next });
  const show = (one: Template) =>
    go({ namespace: search.namespace, show: one.name, in: one.namespace });
  return (
    <Page title="Templates">
      {found.isPending && <Loading rows={5} label="Loading templates" />}
      {found.isError && <ErrorBox error={found.error} onRetry={() => void found.refetch()} />}
      {found.data?.templates.length === 0 && (
        <Empty title="No templates">
          A template is a workflow that can be started again and again with other parameters:
          <code> windlass templates apply NAME FILE</code>
        </Empty>
      )}
      {found.data && found.data.templates.length > 0 && (
        <div className={styles.table}>
          <DataTable
            label="Templates"
            rows={found.data.templates}
            columns={columns(search)}
            rowKey={(row) => `${row.namespace}/${row.name}`}
            isSelected={(row) => row.name === search.show && row.namespace === search.in}
            onOpen={show}
            maxHeight="45vh"
          />
        </div>
      )}
      {search.show && (
        <TemplateDetails
          key={`${search.in}/${search.show}/${search.version ?? 0}`}
          name={search.show}
          namespace={search.in ?? "default"}
          version={search.version ?? 0}
          onVersion={(version) => go({ ...search, version })}
        />
      )}
    </Page>
  );
}

function columns(search: TemplatesSearch): ColumnDef<Template, unknown>[] {
  return [
    {
      id: "name",
      header: "Name",
      meta: { width: "minmax(150px, 2fr)" },
      cell: ({ row }) => (
        <Link
          to="/templates"
          search={{ ...search, show: row.original.name, in: row.original.namespace }}
        >
          {row.original.name}
        </Link>
      ),
    },
    {
      id: "version",
      header: "Version",
      meta: { width: "80px", align: "right" },
      cell: ({ row }) => row.original.version,
    },
    {
      id: "parameters",
      header: "Parameters",
      meta: { width: "minmax(160px, 2fr)" },
      cell: ({ row }) => Object.keys(row.original.parameters).join(", ") || "none",
    },
    {
      id: "namespace",
      header: "Namespace",
      meta: { width: "minmax(90px, 1fr)" },
      cell: ({ row }) => row.original.namespace,
    },
    {
      id: "created",
      header: "Changed",
      meta: { width: "110px" },
      cell: ({ row }) => <Time at={row.original.created_at} />,
    },
    {
      id: "by",
      header: "By",
      meta: { width: "minmax(90px, 1fr)" },
      cell: ({ row }) => row.original.created_by ?? "–",
    },
  ];
}
