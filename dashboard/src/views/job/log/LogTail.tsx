import { useQuery } from "@tanstack/react-query";
import { answer, api } from "../../../api/client";
import { AnsiText } from "./AnsiText";
import styles from "./LogTail.module.css";

/** The last lines of a job's log; nothing if it wrote none, or its log may not be read. */
export function LogTail({ job, lines = 20 }: { job: number; lines?: number }) {
  const found = useQuery({
    queryKey: ["log-tail", job, lines],
    queryFn: ({ signal }) =>
      answer(
        api.GET("/api/v1/jobs/{job}/log", {
          params: { path: { job }, query: { tail: lines, limit: 65_536 } },
          parseAs: "text",
          signal,
        }),
      ),
    retry: false,
  });
  const text = found.data?.trimEnd();
  if (!text) return null;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: long lines scroll by keyboard too.
    <pre className={styles.tail} tabIndex={0}>
      {text.split("\n").map((line, number) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: lines have nothing but a place.
        <div key={number}>
          <AnsiText text={line} />
        </div>
      ))}
    </pre>
  );
}
