import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { answer, api, type Schemas } from "../../api/client";
import { API_BASE } from "../../base";
import { CodeBlock } from "../../ui/CodeBlock";
import { Empty } from "../../ui/Empty";
import { ErrorBox } from "../../ui/ErrorBox";
import { Facts } from "../../ui/Facts";
import { bytes, counted } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import { Card } from "../../ui/Page";
import { PlainTable } from "../../ui/PlainTable";
import { StateBadge } from "../../ui/StateBadge";
import { Time } from "../../ui/Time";
import { Commit, Cut } from "./Commit";
import styles from "./Fuzzing.module.css";

type Status = Schemas["FuzzStatus"];

/** The findings of a solver; an open one shows its report and its input. */
export function Findings({ status, open }: { status: Status; open?: string }) {
  const several = status.findings.some((one) => Object.keys(one.branches ?? {}).length > 0);
  return (
    <>
      {status.unreadable.map((text) => (
        <ErrorBox key={text} error={new Error(text)} />
      ))}
      {open && <Report solver={status.solver} finding={open} />}
      {status.findings.length === 0 ? (
        <Empty title="No findings" />
      ) : (
        <PlainTable
          label="Findings"
          head={["Finding", "State", "Title", "Introduced by", ...(several ? ["Branches"] : [])]}
          rows={status.findings.map((one) => ({
            key: one.key,
            cells: [
              <Link
                key="key"
                to="/fuzzing"
                search={{ solver: status.solver, tab: "findings", finding: one.key }}
              >
                {one.key}
              </Link>,
              <StateBadge
                key="state"
                state={one.state === "open" ? "failed" : "completed"}
                label={one.state}
                plain
              />,
              one.title,
              <Commit key="commit" hash={one.introduced_by} />,
              ...(several ? [branchesOf(one.branches ?? {})] : []),
            ],
          }))}
        />
      )}
      <Cut shown={status.findings.length} of={status.counts.findings ?? 0} noun="finding" />
    </>
  );
}

/** "main fixed, release/1 alive" */
function branchesOf(branches: Record<string, string>) {
  return Object.entries(branches)
    .map(([name, state]) => `${name} ${state}`)
    .join(", ");
}

function Report({ solver, finding }: { solver: string; finding: string }) {
  const path = { solver, finding };
  const found = useQuery({
    queryKey: ["fuzz", solver, "finding", finding],
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/fuzz/{solver}/findings/{finding}", { signal, params: { path } })),
  });
  if (found.error) return <ErrorBox error={found.error} onRetry={() => void found.refetch()} />;
  const shown = found.data;
  if (!shown) return <Loading />;
  const input = `${API_BASE}/api/v1/fuzz/${encodeURIComponent(solver)}/findings/${encodeURIComponent(shown.key)}/input`;
  return (
    <Card className={styles.report}>
      <h3>{shown.title}</h3>
      <Facts
        items={[
          [
            "State",
            <StateBadge
              key="s"
              state={shown.state === "open" ? "failed" : "completed"}
              label={shown.state}
            />,
          ],
          ["Found", <Time key="t" at={shown.found_at} />],
          ["Found in", <Commit key="f" hash={shown.found_in} />],
          ["Introduced by", <Commit key="i" hash={shown.introduced_by} />],
          ...(shown.branches ?? []).map((one): [string, string] => [`On ${one.name}`, one.text]),
          ["Engine", shown.engine],
          ["Seen", counted(shown.times, "time")],
          [
            "Input",
            <a key="a" href={input} download>{`${shown.input_name} (${bytes(shown.size)})`}</a>,
          ],
          ["Issue", shown.issue || undefined],
        ]}
      />
      {shown.excerpt && (
        <>
          <h3>Input</h3>
          <CodeBlock text={shown.excerpt} label="Copy the input" />
        </>
      )}
      <h3>Report</h3>
      <CodeBlock text={shown.report} label="Copy the report" />
    </Card>
  );
}
