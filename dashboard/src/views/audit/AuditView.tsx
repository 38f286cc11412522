import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ColumnDef } from "@tanstack/react-table";
import { answer, api, type Schemas } from "../../api/client";
import { DataTable } from "../../ui/DataTable";
import { Empty } from "../../ui/Empty";
import { ErrorBox, FILTER_HINT } from "../../ui/ErrorBox";
import { Checkbox, TextField } from "../../ui/Field";
import { type ActiveFilter, FilterBar } from "../../ui/FilterBar";
import { counted, localTime } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import { JobLink, WorkflowLink } from "../../ui/links";
import { Page } from "../../ui/Page";
import { StateBadge } from "../../ui/StateBadge";
import { Time } from "../../ui/Time";
import styles from "./Audit.module.css";
import { type AuditSearch, auditRoute, auditSearch } from "./route";

type Entry = Schemas["AuditEntry"];

const COLUMNS: ColumnDef<Entry, unknown>[] = [
  {
    id: "at",
    header: "When",
    meta: { width: "110px" },
    cell: ({ row }) => <Time at={row.original.at} />,
  },
  {
    id: "actor",
    header: "Who",
    meta: { width: "minmax(110px, 1fr)" },
    cell: ({ row: { original } }) =>
      original.actor ? <Narrow name="actor" value={original.actor} /> : <span>no token</span>,
  },
  {
    id: "action",
    header: "What",
    meta: { width: "minmax(240px, 3fr)" },
    cell: ({ row: { original } }) => (
      <Narrow name="action" value={original.action} text={original.what ?? original.action} />
    ),
  },
  {
    id: "resource",
    header: "Where",
    meta: { width: "minmax(170px, 2fr)" },
    cell: ({ row: { original } }) => <Resource path={original.resource} about={original.about} />,
  },
  {
    id: "result",
    header: "Result",
    meta: { width: "minmax(120px, 1fr)" },
    cell: ({ row: { original } }) => (
      <StateBadge
        state={original.error ? "failed" : "completed"}
        label={
          original.error ? `${original.error.replaceAll("_", " ")} (${original.status})` : "done"
        }
        plain
      />
    ),
  },
  {
    id: "calls",
    header: "Calls",
    meta: { width: "70px", align: "right" },
    cell: ({ row }) => row.original.calls,
  },
  {
    id: "namespace",
    header: "Namespace",
    meta: { width: "120px" },
    cell: ({ row: { original } }) =>
      original.namespace ? <Narrow name="namespace" value={original.namespace} /> : "–",
  },
  {
    id: "address",
    header: "Address",
    meta: { width: "130px" },
    cell: ({ row }) => <Narrow name="address" value={row.original.address} />,
  },
];

/** Who changed what, and who was refused, newest first. */
export function AuditView() {
  // Without what the frame adds to the address, such as the time that the page shows.
  const search = auditSearch({ ...auditRoute.useSearch() });
  const navigate = auditRoute.useNavigate();
  const found = useInfiniteQuery({
    queryKey: ["audit", search],
    queryFn: ({ pageParam, signal }) =>
      answer(
        api.GET("/api/v1/audit/recent", {
          signal,
          params: { query: { ...search, before: pageParam, limit: 200 } },
        }),
      ),
    initialPageParam: 0,
    getNextPageParam: (page) => page.next ?? undefined,
  });
  const rows = found.data?.pages.flatMap((page) => page.entries) ?? [];
  const change = (next: Partial<AuditSearch>) =>
    void navigate({ search: (before) => ({ ...before, ...next }), replace: true });
  const words = rows.find((row) => row.action === search.action)?.what;
  const active: ActiveFilter[] = (["action", "namespace", "address"] as const)
    .filter((name) => search[name])
    .map((name) => ({
      key: name,
      label: `${LABELS[name]}: ${(name === "action" && words) || search[name]}`,
      onRemove: () => change({ [name]: undefined }),
    }));
  return (
    <Page title="Audit" full>
      <FilterBar
        active={active}
        onClear={() => change({ action: undefined, namespace: undefined, address: undefined })}
      >
        <TextField
          label="Who"
          hideLabel
          placeholder="Who, exactly"
          value={search.actor ?? ""}
          onChange={(event) => change({ actor: event.target.value || undefined })}
        />
        <Moment label="From" value={search.since} onChange={(since) => change({ since })} />
        <Moment label="Until" value={search.until} onChange={(until) => change({ until })} />
        <Checkbox
          label="Refused calls only"
          checked={search.refused ?? false}
          onChange={(event) => change({ refused: event.target.checked || undefined })}
        />
      </FilterBar>
      {found.error && (
        <ErrorBox error={found.error} hint={FILTER_HINT} onRetry={() => void found.refetch()} />
      )}
      {found.isPending && <Loading />}
      {found.data && rows.length === 0 && !found.hasNextPage && (
        <Empty title="Nothing was recorded that matches">
          <p>Remove a filter to see more.</p>
        </Empty>
      )}
      {rows.length > 0 && (
        <DataTable
          label="Audit log"
          rows={rows}
          columns={COLUMNS}
          rowKey={(row) => String(row.id)}
          onNearEnd={() => {
            if (found.hasNextPage && !found.isFetching) void found.fetchNextPage();
          }}
          footer={`${counted(rows.length, "row")}${found.hasNextPage ? ", older ones follow" : ""}`}
        />
      )}
    </Page>
  );
}

const LABELS = { action: "what", namespace: "namespace", address: "address" } as const;

/** One end of the time that is shown; empty: without an end. */
function Moment(props: {
  label: string;
  value: string | undefined;
  onChange: (moment: string | undefined) => void;
}) {
  return (
    <TextField
      label={props.label}
      className={styles.moment}
      type="datetime-local"
      value={props.value === undefined ? "" : localTime(props.value)}
      onChange={(event) => {
        const at = Date.parse(event.target.value);
        props.onChange(Number.isNaN(at) ? undefined : new Date(at).toISOString());
      }}
    />
  );
}

/** A value that leads to the rows which have it too. */
function Narrow(props: { name: keyof AuditSearch; value: string; text?: string }) {
  const { name, value, text = value } = props;
  return (
    <Link
      from="/audit"
      to="/audit"
      search={(before) => ({ ...before, [name]: value })}
      title={value}
    >
      {text}
    </Link>
  );
}

/** What a call was about, in words if they are known; a job or a workflow leads to it. */
function Resource({ path, about }: { path: string; about: string | null | undefined }) {
  const [, kind, number] = /^\/api\/v1\/(jobs|workflows)\/(\d+)(?:\/|$)/.exec(path) ?? [];
  const text = <span title={path}>{about ?? path.replace(/^\/api\/v1/, "")}</span>;
  if (!number) return text;
  const id = Number(number);
  return kind === "jobs" ? (
    <JobLink id={id}>{text}</JobLink>
  ) : (
    <WorkflowLink id={id}>{text}</WorkflowLink>
  );
}
