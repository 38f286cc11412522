-- Locks the best ready jobs of several shapes, in order of rank. `cursor_*` says where each probe
-- goes on that has more; `full_at` is the first of these places.
CREATE OR REPLACE FUNCTION peek_shapes(
    asked integer, least_attempt integer, probe_shapes integer[], probe_ranks bigint[],
    probe_jobs bigint[], probe_counts integer[],
    OUT shapes integer[], OUT ranks bigint[], OUT jobs bigint[], OUT attempts integer[],
    OUT tied boolean[], OUT cursor_ranks bigint[], OUT cursor_jobs bigint[], OUT full_at bigint[]
) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    WITH peeked AS MATERIALIZED (
        SELECT p.place, p.count, r.shape, r.rank, r.job, r.attempt,
               r.workflow IS NOT NULL OR r.limit_id IS NOT NULL
               OR r.excluded IS NOT NULL AS tied
        FROM unnest(probe_shapes, probe_ranks, probe_jobs, probe_counts) WITH ORDINALITY
             AS p (shape, rank, job, count, place)
        CROSS JOIN LATERAL (
            SELECT * FROM ready
            WHERE shape = p.shape AND (rank, job) >= (p.rank, p.job)
            ORDER BY rank, job LIMIT least(p.count, asked) FOR UPDATE SKIP LOCKED
        ) AS r
    ), ends AS MATERIALIZED (
        SELECT k.place, max(ARRAY[k.rank, k.job]) AS last FROM peeked k
        GROUP BY k.place, k.count HAVING count(*) = least(k.count, asked)
    ), cursors AS (
        SELECT array_agg(e.last[1] ORDER BY p.place) AS by_rank,
               array_agg(e.last[2] + 1 ORDER BY p.place) AS by_job,
               min(ARRAY[e.last[1], e.last[2] + 1]) AS lowest
        FROM unnest(probe_shapes) WITH ORDINALITY AS p (shape, place)
        LEFT JOIN ends e ON e.place = p.place
    ), sorted AS (
        SELECT array_agg(k.shape ORDER BY k.rank, k.job) AS shapes,
               array_agg(k.rank ORDER BY k.rank, k.job) AS ranks,
               array_agg(k.job ORDER BY k.rank, k.job) AS jobs,
               array_agg(greatest(k.attempt + 1, least_attempt + k.attempt % {attempt.per_epoch}) ORDER BY k.rank, k.job)
                   AS attempts,
               array_agg(k.tied ORDER BY k.rank, k.job) AS tied
        FROM peeked k
    )
    SELECT s.shapes, s.ranks, s.jobs, s.attempts, s.tied, c.by_rank, c.by_job, c.lowest
    INTO shapes, ranks, jobs, attempts, tied, cursor_ranks, cursor_jobs, full_at
    FROM sorted s, cursors c;
END $$;
