import { useNavigate } from "@tanstack/react-router";
import { useEffect, useMemo } from "react";
import type { Schemas } from "../../api/client";
import { useAsOf } from "../../shell/asOf";
import { Button, IconButton } from "../../ui/Button";
import { DataTable } from "../../ui/DataTable";
import { Empty } from "../../ui/Empty";
import { ErrorBox, FILTER_HINT } from "../../ui/ErrorBox";
import { count, counted } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import type { JobsFilter } from "../../ui/links";
import { Menu } from "../../ui/Menu";
import { Page } from "../../ui/Page";
import { useStored } from "../../ui/stored";
import { useNarrow } from "../../ui/useNarrow";
import { BulkActions } from "./BulkActions";
import { COLUMNS } from "./columns";
import { describe } from "./filter";
import { JobFilters } from "./JobFilters";
import styles from "./Jobs.module.css";
import { jobsRoute } from "./route";
import { type Job, useJobs } from "./useJobs";

const FEW = 40; // rows that a screen may hold without a scroll bar
const SEARCHED = 20_000; // jobs that a search looks at before somebody asks for more

export function JobsView() {
  const search = jobsRoute.useSearch();
  const navigate = useNavigate();
  const { list, rows, looked, onSight, count: found, where, fresh, refresh } = useJobs(search);
  const [hidden, setHidden] = useStored<Record<string, boolean>>("jobs.columns", {});
  const isPast = useAsOf() !== undefined;
  useSearchOn(list, rows.length, looked, isPast ? 0 : SEARCHED);
  const narrow = useNarrow();
  const columns = useMemo(() => COLUMNS.map((one) => one.column), []);
  const visibility = useMemo(
    () =>
      Object.fromEntries(
        COLUMNS.map((one) => [
          one.id,
          hidden[one.id] ?? (narrow ? one.isNarrow === true : one.isUsual),
        ]),
      ),
    [hidden, narrow],
  );
  const isWhole = list.isSuccess && !list.hasNextPage;
  const change = (next: JobsFilter) => void navigate({ to: "/jobs", search: next });
  const open = (job: Job) => void navigate({ to: "/jobs/$job", params: { job: String(job.id) } });
  const actions = (
    <>
      {fresh > 0 && (
        <Button kind="primary" icon="refresh" onClick={refresh}>
          {fresh >= 100 ? "100+ new jobs" : counted(fresh, "new job")}
        </Button>
      )}
      <BulkActions where={where} onDone={refresh} />
      <Menu
        label="Columns"
        icon="columns"
        stays
        items={COLUMNS.map((one) => ({
          label: one.label,
          checked: visibility[one.id],
          onSelect: () => setHidden({ ...hidden, [one.id]: !visibility[one.id] }),
        }))}
      />
      <IconButton icon="refresh" label="Load again" onClick={refresh} />
    </>
  );
  return (
    <Page
      title="Jobs"
      facts={<Found found={found.data} all={isWhole ? rows.length : undefined} />}
      actions={actions}
      full
    >
      <JobFilters search={search} onChange={change} />
      {list.error && (
        <ErrorBox error={list.error} hint={FILTER_HINT} onRetry={() => void list.refetch()} />
      )}
      {list.isPending && <Loading rows={12} />}
      {list.isSuccess && rows.length === 0 && !list.hasNextPage && <NoJobs search={search} />}
      {list.isSuccess && (rows.length > 0 || list.hasNextPage) && (
        <div className={styles.table}>
          <DataTable
            label="Jobs"
            rows={rows}
            columns={columns}
            rowKey={(job) => String(job.id)}
            visibility={visibility}
            onOpen={open}
            onSight={onSight}
            onNearEnd={() => {
              if (list.hasNextPage && !list.isFetchingNextPage) void list.fetchNextPage();
            }}
            footer={
              list.hasNextPage && rows.length < FEW ? (
                <SearchOn
                  found={rows.length}
                  looked={looked}
                  isBusy={list.isFetchingNextPage}
                  onMore={() => void list.fetchNextPage()}
                />
              ) : (
                footer(rows.length, list.hasNextPage)
              )
            }
          />
        </div>
      )}
    </Page>
  );
}

/** Goes on with a search that has found little, up to a bound: further jobs are a click away. */
function useSearchOn(
  list: ReturnType<typeof useJobs>["list"],
  found: number,
  looked: number,
  most: number,
): void {
  const { hasNextPage, isFetchingNextPage, isError, fetchNextPage } = list;
  const goesOn = hasNextPage && !isFetchingNextPage && !isError;
  useEffect(() => {
    if (goesOn && found < FEW && looked < most) void fetchNextPage();
  }, [goesOn, found, looked, most, fetchNextPage]);
}

/** How many jobs match, and how sure that is; `all` is how many the list has at its end. */
function Found({ found, all }: { found: Schemas["JobCount"] | undefined; all?: number }) {
  if (all !== undefined && !found?.exact) return <span>{counted(all, "job")}</span>;
  if (!found) return <span>&nbsp;</span>;
  if (found.exact) return <span>{counted(found.count, "job")}</span>;
  if (found.estimate && found.count === found.looked) {
    return <span>about {counted(found.estimate, "job")}</span>;
  }
  const looked = `among the ${count(found.looked)} newest`;
  return (
    <span title="Counting all of them would take long">
      {found.estimate
        ? `about ${counted(found.estimate, "job")}; ${count(found.count)} ${looked}`
        : `${found.count === 0 ? "none" : `at least ${counted(found.count, "job")},`} ${looked}`}
    </span>
  );
}

function NoJobs({ search }: { search: JobsFilter }) {
  if (describe(search).length > 0) {
    return <Empty title="No job matches">Remove a filter to see more.</Empty>;
  }
  return (
    <Empty title="There are no jobs yet">
      Submit one here, or with <code>windlass run -- echo hello</code>.
    </Empty>
  );
}

interface SearchOnProps {
  found: number;
  looked: number;
  isBusy: boolean;
  onMore: () => void;
}

/** A search looked at many jobs and found so few that nobody can scroll for more. */
function SearchOn({ found, looked, isBusy, onMore }: SearchOnProps) {
  return (
    <div className={styles.searchOn}>
      <span>
        {found === 0 ? "Nothing" : counted(found, "job")} found so far among{" "}
        {counted(looked, "job")}.
      </span>
      <Button small busy={isBusy} onClick={onMore}>
        Search more jobs
      </Button>
    </div>
  );
}

function footer(shown: number, hasMore: boolean): string {
  return hasMore
    ? `${count(shown)} shown; scroll for more`
    : `${counted(shown, "job")}, that is all`;
}
