-- Returns whether `ready` holds nothing better than where the probes begin: nothing was missed.
CREATE OR REPLACE FUNCTION probes_cover_ready(shapes integer[], ranks bigint[], jobs bigint[])
RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN NOT EXISTS (
        WITH RECURSIVE heads AS (
            (SELECT r.shape, r.rank, r.job FROM ready r ORDER BY r.shape, r.rank, r.job LIMIT 1)
            UNION ALL
            SELECT n.shape, n.rank, n.job FROM heads h CROSS JOIN LATERAL (
                SELECT r.shape, r.rank, r.job FROM ready r WHERE r.shape > h.shape
                ORDER BY r.shape, r.rank, r.job LIMIT 1
            ) AS n
        )
        SELECT FROM heads h WHERE NOT EXISTS (
            SELECT FROM unnest(shapes, ranks, jobs) AS p (shape, rank, job)
            WHERE p.shape = h.shape AND (p.rank, p.job) <= (h.rank, h.job)
        )
    );
END $$;
