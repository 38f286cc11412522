import { useQuery } from "@tanstack/react-query";
import { answer, api } from "../../api/client";
import { Empty } from "../../ui/Empty";
import { ErrorBox } from "../../ui/ErrorBox";
import { counted } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import { Card } from "../../ui/Page";
import { Commit, Cut } from "./Commit";
import styles from "./Fuzzing.module.css";

/** The functions that the fuzzing of a commit reached before any other. */
export function Reached({ solver, commit }: { solver: string; commit: string }) {
  const path = { solver, commit };
  const found = useQuery({
    queryKey: ["fuzz", solver, "reached", commit],
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/fuzz/{solver}/reached/{commit}", { signal, params: { path } })),
  });
  if (found.error) return <ErrorBox error={found.error} onRetry={() => void found.refetch()} />;
  if (!found.data) return <Loading />;
  return (
    <Card className={styles.report}>
      <h3>
        Reached first by fuzzing <Commit hash={commit} />
      </h3>
      {found.data.targets.length === 0 && <Empty title="Nothing is on record" />}
      {found.data.targets.map((one) => (
        <div key={one.target}>
          <p>
            {one.target}: {counted(one.function_count, "function")},{" "}
            {counted(one.line_count, "line")} in {counted(one.runs, "run")}
          </p>
          <ul className={styles.functions}>
            {one.functions.map((name) => (
              <li key={name}>
                <code>{name}</code>
              </li>
            ))}
          </ul>
          <Cut shown={one.functions.length} of={one.function_count} noun="function" />
        </div>
      ))}
    </Card>
  );
}
