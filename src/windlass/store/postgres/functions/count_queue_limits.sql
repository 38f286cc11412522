-- Adds claimed jobs to the limits of their queues, and takes off those that have ended. The caller
-- holds the limits.
CREATE OR REPLACE FUNCTION count_queue_limits(
    limit_shapes integer[], limit_ids bigint[], given_shapes integer[], freed bigint[]
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE limits l SET leased = l.leased + d.delta FROM (
        SELECT u.id, sum(u.delta) AS delta FROM (
            SELECT p.limit_id AS id, 1 AS delta FROM unnest(given_shapes) AS g (shape)
            JOIN unnest(limit_shapes, limit_ids) AS p (shape, limit_id) ON p.shape = g.shape
            UNION ALL SELECT f.id, -1 FROM unnest(freed) AS f (id)
        ) AS u GROUP BY u.id
    ) AS d WHERE l.id = d.id AND d.delta <> 0;
END $$;
