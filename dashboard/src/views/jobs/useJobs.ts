import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useMemo, useRef, useState } from "react";
import { answer, api, type Schemas } from "../../api/client";
import { useLive } from "../../live/useLive";
import { useAsOf } from "../../shell/asOf";
import type { JobsFilter } from "../../ui/links";
import { whereOf } from "./filter";
import { type Job, type JobRows, keptRows, MAX_SOME } from "./rows";

const PAGE = 100;
const ANNOUNCE_MS = 1_000;

/** The jobs that match the URL: pages by cursor, rows that change in place, new ones counted. */
export function useJobs(search: JobsFilter) {
  const asOf = useAsOf();
  const client = useQueryClient();
  const [openedAt, setOpenedAt] = useState(() => Date.now());
  const where = useMemo(() => whereOf(search, openedAt), [search, openedAt]);
  const sort = search.sort;
  const key = useMemo(() => ["jobs", "list", where, sort, asOf] as const, [where, sort, asOf]);
  const kept = useMemo(() => keptRows(client, key), [client, key]);
  const list = useInfiniteQuery({
    queryKey: key,
    queryFn: async ({ pageParam, signal }) => {
      const query = { ...where, sort, as_of: asOf, after: pageParam, limit: PAGE };
      const page = await answer(api.GET("/api/v1/jobs", { params: { query }, signal }));
      kept.keep(page.jobs);
      // The rows themselves are kept apart: those far away are forgotten.
      return { ids: page.jobs.map((job) => job.id), next: page.next, looked: page.looked };
    },
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
  const ids = useMemo(() => list.data?.pages.flatMap((page) => page.ids) ?? [], [list.data]);
  const { rows, onSight, reload } = useRows(kept, ids, asOf === undefined);
  const follow = useFollow(kept, ids, reload, () =>
    api.GET("/api/v1/jobs", { params: { query: { ...where, sort, limit: PAGE } } }),
  );
  const refresh = useCallback(() => {
    follow.forget();
    setOpenedAt(Date.now());
    void client.resetQueries({ queryKey: ["jobs"] });
  }, [client, follow.forget]);
  const looked = list.data?.pages.reduce((sum, page) => sum + page.looked, 0) ?? 0;
  return { list, rows, looked, onSight, count, where, fresh: follow.fresh, refresh };
}

/** The rows as the table reads them; what is in sight and was forgotten is loaded again. */
function useRows(kept: JobRows, ids: readonly number[], mayForget: boolean) {
  const [version, setVersion] = useState(0);
  const sight = useRef<readonly number[]>([]);
  const load = useCallback(
    async (wanted: readonly number[]) => {
      for (let from = 0; from < wanted.length; from += MAX_SOME) {
        const query = { id: wanted.slice(from, from + MAX_SOME) };
        const found = await answer(api.GET("/api/v1/jobs/some", { params: { query } }));
        kept.keep(found.jobs);
        kept.lose(query.id);
      }
      setVersion((before) => before + 1);
    },
    [kept],
  );
  const onSight = useCallback(
    (first: number, last: number) => {
      sight.current = ids.slice(first, last + 1);
      if (!mayForget) return;
      kept.forgetBeyond(ids, first, last);
      const missing = kept.missing(sight.current);
      if (missing.length > 0) void load(missing).catch(() => kept.giveUp(missing));
    },
    [kept, ids, load, mayForget],
  );
  /** Asks again for rows in sight, and forgets others. */
  const reload = useCallback(
    (changed: ReadonlySet<number> | "all") => {
      const isChanged = (id: number) => changed === "all" || changed.has(id);
      const seen = sight.current.filter(isChanged);
      kept.forget(changed, new Set(seen));
      if (seen.length > 0) void load(seen).catch(() => undefined);
    },
    [kept, load],
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new version has other rows.
  const rows = useMemo(
    () => ({
      length: ids.length,
      at: (index: number) => kept.job(ids[index]),
      whyMissing: (index: number) => (kept.isGone(ids[index]) ? "This job was deleted" : undefined),
    }),
    [kept, ids, version],
  );
  return { rows, onSight, reload };
}

/** Updates rows where they are, and counts jobs that are newer than those of the list. */
function useFollow(
  kept: JobRows,
  ids: readonly number[],
  reload: (changed: ReadonlySet<number> | "all") => void,
  firstPage: () => Promise<{ data?: Schemas["JobList"]; response: Response }>,
) {
  const [fresh, setFresh] = useState(0);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const latest = useRef({ ids, firstPage });
  latest.current = { ids, firstPage };
  const announce = useCallback(() => {
    timer.current ??= setTimeout(async () => {
      timer.current = undefined;
      const got = await answer(latest.current.firstPage()).catch(() => undefined);
      const newest = kept.newest;
      setFresh(got?.jobs.filter((job) => job.id > newest).length ?? 0);
    }, ANNOUNCE_MS);
  }, [kept]);
  useLive(["jobs"], (change) => {
    reload(change.more ? "all" : new Set(change.jobs));
    if (change.more || change.jobs.some((id) => !kept.has(id))) announce();
  });
  const forget = useCallback(() => setFresh(0), []);
  return { fresh, forget };
}

export type { Job };
