import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { answer, api, type Schemas } from "../../api/client";
import { useMay } from "../../api/who";
import { Empty } from "../../ui/Empty";
import { ErrorBox } from "../../ui/ErrorBox";
import { count } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import { Page } from "../../ui/Page";
import { PlainTable } from "../../ui/PlainTable";
import { StateBadge } from "../../ui/StateBadge";
import { fuzzingRoute } from "./route";
import { SolverPart } from "./SolverPart";

type Solver = Schemas["FuzzSolver"];

/** Commit fuzzing: the solvers that this server shows, and the state of one of them. */
export function FuzzingView() {
  const search = fuzzingRoute.useSearch();
  const allowed = useMay("read-plugins");
  const found = useQuery({
    queryKey: ["fuzz"],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/fuzz", { signal })),
    enabled: allowed,
    refetchInterval: 60_000,
  });
  const solvers = found.data?.solvers ?? [];
  const chosen = search.solver ?? (solvers.length === 1 ? solvers[0]?.name : undefined);
  return (
    <Page title="Fuzzing">
      {!allowed && (
        <Empty title="Your token may not read fuzzing">
          Sign in with a token that sees all namespaces, or ask an administrator for one.
        </Empty>
      )}
      {found.error && <ErrorBox error={found.error} onRetry={() => void found.refetch()} />}
      {allowed && found.isPending && <Loading />}
      {found.data && solvers.length === 0 && (
        <Empty title="This server shows no solvers">
          Start it with <code>--fuzz SOLVER.yaml</code>, the file that <code>windlass fuzz</code>{" "}
          takes.
        </Empty>
      )}
      {solvers.length > 0 && <Solvers solvers={solvers} />}
      {allowed && chosen && <SolverPart name={chosen} search={search} />}
    </Page>
  );
}

function Solvers({ solvers }: { solvers: readonly Solver[] }) {
  return (
    <PlainTable
      label="Solvers"
      head={["Solver", "Queue", "Scheduled", "Runs", "Open findings", "Alarms", "Repository"]}
      numbers={[1, 2, 3, 4, 5]}
      rows={solvers.map((solver) => ({
        key: solver.name,
        cells: [
          <Link key="name" to="/fuzzing" search={{ solver: solver.name }}>
            {solver.name}
          </Link>,
          ...numbersOf(solver),
          solver.problem ? (
            <StateBadge key="problem" state="failed" label={solver.problem} plain />
          ) : (
            `${solver.repository}, ${namesOf(solver)}`
          ),
        ],
      }))}
    />
  );
}

/** The branches that the solver file names; an older server tells only the first. */
function namesOf(solver: Solver) {
  return (solver.branches?.length ? solver.branches : [solver.branch]).join(", ");
}

function numbersOf(solver: Solver) {
  if (solver.problem) return ["–", "–", "–", "–", "–"];
  const to = (tab: "builds" | "schedule" | "findings" | "statistics", value: number) => (
    <Link key={tab} to="/fuzzing" search={{ solver: solver.name, tab }}>
      {count(value)}
    </Link>
  );
  return [
    to("builds", solver.queue),
    to("schedule", solver.scheduled),
    to("statistics", solver.runs),
    to("findings", solver.open_findings),
    solver.unhealthy ? (
      <StateBadge key="alarms" state="failed" label={count(solver.unhealthy)} plain />
    ) : (
      "0"
    ),
  ];
}
