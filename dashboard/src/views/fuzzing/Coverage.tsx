import { useQuery } from "@tanstack/react-query";
import { answer, api } from "../../api/client";
import { Empty } from "../../ui/Empty";
import { ErrorBox } from "../../ui/ErrorBox";
import { count, counted } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import { PlainTable } from "../../ui/PlainTable";
import { Time } from "../../ui/Time";
import { Commit, Cut } from "./Commit";
import styles from "./Fuzzing.module.css";

/** Which functions the tests of a solver reach, by source file. */
export function Coverage({ solver }: { solver: string }) {
  const found = useQuery({
    queryKey: ["fuzz", solver, "coverage"],
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/fuzz/{solver}/coverage", { signal, params: { path: { solver } } })),
  });
  if (found.error) return <ErrorBox error={found.error} onRetry={() => void found.refetch()} />;
  const map = found.data;
  if (!map) return <Loading />;
  if (!map.mapped_at) return <Empty title="There is no coverage map yet" />;
  return (
    <>
      <p className={styles.soft}>
        {counted(map.functions, "function")} reached by {counted(map.tests, "test")}, mapped{" "}
        <Time at={map.mapped_at} /> at <Commit hash={map.commit} />
      </p>
      <PlainTable
        label="Coverage by file"
        head={["File", "Functions", "Tests"]}
        numbers={[1, 2]}
        rows={map.files.map((file) => ({
          key: file.path,
          cells: [file.path, count(file.functions), count(file.tests)],
        }))}
      />
      <Cut shown={map.files.length} of={map.file_count} noun="file" />
    </>
  );
}
