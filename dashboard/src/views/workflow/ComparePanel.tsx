import { useQuery } from "@tanstack/react-query";
import type { ColumnDef } from "@tanstack/react-table";
import { type FormEvent, useState } from "react";
import { answer, api, type Schemas } from "../../api/client";
import { Button } from "../../ui/Button";
import { DataTable } from "../../ui/DataTable";
import { ErrorBox } from "../../ui/ErrorBox";
import { SelectField, TextField } from "../../ui/Field";
import { count, counted, duration, moment } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import { JobLink, WorkflowLink } from "../../ui/links";
import { StateBadge } from "../../ui/StateBadge";
import type { Workflow } from "./queries";
import styles from "./Workflow.module.css";

type Compared = Schemas["ComparedJob"];

interface Props {
  workflow: Workflow;
  other: number | undefined;
  onChoose: (other: number | undefined) => void;
}

/** What this run and another one differ in, the largest differences first. */
export function ComparePanel({ workflow, other, onChoose }: Props) {
  return (
    <div className={styles.panel}>
      <Choose workflow={workflow} other={other} onChoose={onChoose} />
      {other === undefined ? (
        <p>Choose another run of this workflow to see what is different.</p>
      ) : (
        <Differences a={other} b={workflow.id} />
      )}
    </div>
  );
}

function Choose({ workflow, other, onChoose }: Props) {
  const [text, setText] = useState("");
  const found = useQuery({
    queryKey: ["workflows", { name: workflow.name, beside: workflow.id }],
    queryFn: ({ signal }) =>
      answer(
        api.GET("/api/v1/workflows", {
          params: { query: { name: workflow.name, limit: 30 } },
          signal,
        }),
      ),
  });
  const runs = found.data?.workflows.filter((one) => one.id !== workflow.id) ?? [];
  function submit(event: FormEvent): void {
    event.preventDefault();
    if (/^\d+$/.test(text)) onChoose(Number(text));
  }
  return (
    <div className={styles.tools}>
      <SelectField
        label={`Other runs of ${workflow.name}`}
        value={other ?? ""}
        onChange={(event) => onChoose(Number(event.target.value) || undefined)}
      >
        <option value="">Choose a run</option>
        {other !== undefined && !runs.some((one) => one.id === other) && (
          <option value={other}>Workflow {other}</option>
        )}
        {runs.map((one) => (
          <option key={one.id} value={one.id}>
            {one.id}, {one.state}, {moment(one.created_at)}
          </option>
        ))}
      </SelectField>
      <form onSubmit={submit} className={styles.tools}>
        <TextField
          label="Or any workflow by its id"
          inputMode="numeric"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <Button type="submit">Compare</Button>
      </form>
    </div>
  );
}

function Differences({ a, b }: { a: number; b: number }) {
  const found = useQuery({
    queryKey: ["workflow", b, "compare", a],
    queryFn: ({ signal }) =>
      answer(
        api.GET("/api/v1/workflows/compare", {
          params: { query: { a, b, limit: 200 } },
          signal,
        }),
      ),
  });
  if (found.isPending) return <Loading rows={6} label="Comparing" />;
  if (!found.data) {
    return <ErrorBox error={found.error} onRetry={() => void found.refetch()} />;
  }
  const shown = found.data;
  return (
    <>
      <p>
        {counted(shown.same, "job is", "jobs are")} the same,{" "}
        {counted(shown.different, "differs", "differ")}
        {shown.only_a > 0 && `, ${count(shown.only_a)} of them only in ${a}`}
        {shown.only_b > 0 && `, ${count(shown.only_b)} only in ${b}`}.{" "}
        <WorkflowLink id={a}>Workflow {a}</WorkflowLink> {took(shown.a.total_ms)}, this one{" "}
        {took(shown.b.total_ms)}.
      </p>
      {shown.jobs.length > 0 && (
        <DataTable
          label="Differences"
          rows={shown.jobs}
          columns={columns(a, b)}
          rowKey={(row) => `${row.name} ${row.a?.job ?? ""} ${row.b?.job ?? ""}`}
          maxHeight="60vh"
          footer={
            shown.left_out > 0 ? `${counted(shown.left_out, "smaller difference")} not shown` : ""
          }
        />
      )}
    </>
  );
}

function took(ms: number | null): string {
  return ms === null ? "has not ended" : `took ${duration(ms / 1000)}`;
}

function columns(a: number, b: number): ColumnDef<Compared, unknown>[] {
  return [
    {
      id: "name",
      header: "Job",
      meta: { width: "minmax(140px, 2fr)" },
      cell: ({ row }) => row.original.name,
    },
    {
      id: "a",
      header: `In ${a}`,
      meta: { width: "minmax(150px, 1fr)" },
      cell: ({ row }) => <Side side={row.original.a} />,
    },
    {
      id: "b",
      header: `In ${b}`,
      meta: { width: "minmax(150px, 1fr)" },
      cell: ({ row }) => <Side side={row.original.b} />,
    },
    {
      id: "run",
      header: "Run time",
      meta: { width: "110px", align: "right" },
      cell: ({ row }) => <More ms={row.original.run_ms} />,
    },
    {
      id: "wait",
      header: "Waiting",
      meta: { width: "110px", align: "right" },
      cell: ({ row }) => <More ms={row.original.wait_ms} />,
    },
    {
      id: "arguments",
      header: "Arguments",
      meta: { width: "minmax(160px, 2fr)" },
      cell: ({ row }) => <Arguments job={row.original} />,
    },
  ];
}

function Side({ side }: { side: Compared["a"] }) {
  if (!side) return <span>not there</span>;
  return (
    <JobLink id={side.job}>
      <StateBadge state={side.state} plain /> {side.run_ms !== null && duration(side.run_ms / 1000)}
    </JobLink>
  );
}

function More({ ms }: { ms: number | null }) {
  if (ms === null) return <span>–</span>;
  return (
    <span className={ms > 0 ? styles.more : styles.less}>
      {ms > 0 ? "+" : ""}
      {duration(ms / 1000)}
    </span>
  );
}

function Arguments({ job }: { job: Compared }) {
  if (!job.arguments_differ) return null;
  const text = job.arguments
    .map((one) => `${one.name}: ${JSON.stringify(one.a)} → ${JSON.stringify(one.b)}`)
    .join("; ");
  return <span title={text}>{text || "differ"}</span>;
}
