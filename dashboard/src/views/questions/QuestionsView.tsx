import { useInfiniteQuery } from "@tanstack/react-query";
import { answer, api } from "../../api/client";
import { useLiveQueries } from "../../live/useLive";
import { Button } from "../../ui/Button";
import { Empty } from "../../ui/Empty";
import { ErrorBox } from "../../ui/ErrorBox";
import { counted } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import { JobLink } from "../../ui/links";
import { Card, Page } from "../../ui/Page";
import { Time } from "../../ui/Time";
import { AnswerForm } from "./AnswerForm";
import styles from "./Questions.module.css";

/** The questions that jobs wait to have answered, each with a form for its answer. */
export function QuestionsView() {
  const found = useInfiniteQuery({
    queryKey: ["questions"],
    queryFn: ({ pageParam, signal }) =>
      answer(
        api.GET("/api/v1/questions", {
          signal,
          params: { query: { after: pageParam, limit: 50 } },
        }),
      ),
    initialPageParam: 0,
    getNextPageParam: (page) => (page.next ? Number(page.next) : undefined),
  });
  useLiveQueries(["jobs"], ["questions"]);
  const questions = found.data?.pages.flatMap((page) => page.questions) ?? [];
  return (
    <Page
      title="Questions"
      facts={found.data && <span>{counted(questions.length, "open question")}</span>}
    >
      {found.error && <ErrorBox error={found.error} onRetry={() => void found.refetch()} />}
      {found.isLoading && <Loading />}
      {found.data && questions.length === 0 && (
        <Empty title="No job asks anything">
          A function asks with <code>windlass.ask(…)</code>.
        </Empty>
      )}
      <ul className={styles.list}>
        {questions.map((one) => (
          <li key={`${one.job} ${one.key}`}>
            <Card className={styles.question}>
              <h2 className={styles.text}>{one.question}</h2>
              <p className={styles.facts}>
                <JobLink id={one.job}>Job {one.job}</JobLink> in {one.namespace}, asked{" "}
                <Time at={one.asked_at} />
                {one.until && (
                  <>
                    , ends <Time at={one.until} />
                  </>
                )}
              </p>
              <AnswerForm question={one} />
            </Card>
          </li>
        ))}
      </ul>
      {found.hasNextPage && (
        <div>
          <Button busy={found.isFetchingNextPage} onClick={() => void found.fetchNextPage()}>
            Show more
          </Button>
        </div>
      )}
    </Page>
  );
}
