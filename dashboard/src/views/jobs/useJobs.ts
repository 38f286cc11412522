import {
  type InfiniteData,
  useInfiniteQuery,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { useCallback, useMemo, useRef, useState } from "react";
import { answer, api, type Schemas } from "../../api/client";
import type { Change } from "../../live/stream";
import { useLive } from "../../live/useLive";
import { useAsOf } from "../../shell/asOf";
import type { JobsFilter } from "../../ui/links";
import { whereOf } from "./filter";

export type Job = Schemas["Job"];
type Pages = InfiniteData<Schemas["JobList"], string>;

const PAGE = 100;
const MOST_SOME = 200; // what the server answers at once
const ANNOUNCE_MS = 1_000;

/** The jobs that match the URL: pages by cursor, rows that change in place, new ones counted. */
export function useJobs(search: JobsFilter) {
  const asOf = useAsOf();
  const client = useQueryClient();
  const [openedAt, setOpenedAt] = useState(() => Date.now());
  const where = useMemo(() => whereOf(search, openedAt), [search, openedAt]);
  const sort = search.sort;
  const key = useMemo(() => ["jobs", "list", where, sort, asOf] as const, [where, sort, asOf]);
  const list = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam, signal }) =>
      answer(
        api.GET("/api/v1/jobs", {
          params: { query: { ...where, sort, as_of: asOf, after: pageParam, limit: PAGE } },
          signal,
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (last) => last.next ?? undefined,
    staleTime: Number.POSITIVE_INFINITY, // The live stream says which rows changed.
    refetchOnWindowFocus: false,
  });
  const count = useQuery({
    queryKey: ["jobs", "count", where, asOf],
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/jobs/count", { params: { query: where }, signal })),
    enabled: asOf === undefined,
  });
  const rows = useMemo(() => list.data?.pages.flatMap((page) => page.jobs) ?? [], [list.data]);
  const follow = useFollow(key, rows, () =>
    api.GET("/api/v1/jobs", { params: { query: { ...where, sort, limit: PAGE } } }),
  );
  const refresh = useCallback(() => {
    follow.forget();
    setOpenedAt(Date.now());
    void client.resetQueries({ queryKey: ["jobs"] });
  }, [client, follow.forget]);
  return { list, rows, count, where, fresh: follow.fresh, refresh };
}

/** Updates rows where they are, and counts jobs that are newer than the first row. */
function useFollow(
  key: readonly unknown[],
  rows: readonly Job[],
  firstPage: () => Promise<{ data?: Schemas["JobList"]; response: Response }>,
) {
  const client = useQueryClient();
  const [fresh, setFresh] = useState(0);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const latest = useRef({ rows, firstPage });
  latest.current = { rows, firstPage };
  const update = useCallback(
    async (ids: readonly number[]) => {
      if (ids.length === 0) return;
      const query = { id: ids.slice(0, MOST_SOME) };
      const found = await answer(api.GET("/api/v1/jobs/some", { params: { query } }));
      const changed = new Map(found.jobs.map((job) => [job.id, job]));
      client.setQueryData<Pages>(key, (before) => before && withRows(before, changed));
    },
    [client, key],
  );
  const announce = useCallback(() => {
    timer.current ??= setTimeout(async () => {
      timer.current = undefined;
      const got = await answer(latest.current.firstPage()).catch(() => undefined);
      const newest = Math.max(0, ...latest.current.rows.map((job) => job.id));
      setFresh(got?.jobs.filter((job) => job.id > newest).length ?? 0);
    }, ANNOUNCE_MS);
  }, []);
  useLive(["jobs"], (change: Change) => {
    const shown = new Set(latest.current.rows.map((job) => job.id));
    const known = change.jobs.filter((id) => shown.has(id));
    const ids = change.more ? [...shown].slice(0, MOST_SOME) : known;
    void update(ids).catch(() => undefined);
    if (change.more || known.length < change.jobs.length) announce();
  });
  const forget = useCallback(() => setFresh(0), []);
  return { fresh, forget };
}

function withRows(before: Pages, changed: ReadonlyMap<number, Job>): Pages {
  const pages = before.pages.map((page) =>
    page.jobs.some((job) => changed.has(job.id))
      ? { ...page, jobs: page.jobs.map((job) => changed.get(job.id) ?? job) }
      : page,
  );
  return { ...before, pages };
}
