-- Runs `sync_plain` for jobs with gates. The server has counted what the worker has room for; this
-- locks and counts the limits of queues before the events get their numbers. Completions free
-- their places in a queue: `freed` names the limit of each. Writes nothing if there is less room
-- than wanted, or if the sync needs the normal path.
CREATE OR REPLACE FUNCTION sync_gated(
    limit_shapes integer[], limit_ids bigint[],
    latest bigint,
    who bigint, whose bigint, said bigint, again boolean, received bigint, described bytea,
    beat_ms bigint, want integer, holds integer, new_state smallint, slack_ms bigint, least_attempt integer,
    refreshed_at bigint, bound_ttl_ms bigint, refresh_ms bigint, following bigint[],
    probe_shapes integer[], probe_ranks bigint[], probe_jobs bigint[], probe_counts integer[],
    probe_depths text[],
    done_jobs bigint[], done_attempts integer[], done_codes integer[], done_results bytea[],
    one_attempt integer, one_code integer, one_result bytea,
    OUT moment bigint, OUT asked integer, OUT looked integer,
    OUT given_jobs bigint[], OUT given_attempts integer[], OUT given_leases bigint[],
    OUT timeouts bigint[], OUT idles bigint[], OUT specs bytea[],
    OUT cursor_ranks bigint[], OUT cursor_jobs bigint[],
    OUT left_shapes integer[], OUT left_ranks bigint[], OUT left_jobs bigint[], OUT held integer,
    OUT given_shapes integer[], OUT freed bigint[]
) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM FROM workers w WHERE w.id = who FOR NO KEY UPDATE;
    PERFORM FROM jobs j WHERE j.id = ANY (done_jobs) ORDER BY j.id FOR NO KEY UPDATE;
    SELECT array_agg(l.queue_limit) INTO freed FROM leases l
    WHERE l.job = ANY (done_jobs) AND l.worker = who AND l.incarnation = whose
      AND l.queue_limit IS NOT NULL;
    PERFORM FROM limits l WHERE l.id = ANY (limit_ids || freed) ORDER BY l.id FOR NO KEY UPDATE;
    IF EXISTS (
        SELECT FROM limits l WHERE l.id = ANY (limit_ids)
        AND l.max - l.leased + coalesce(cardinality(array_positions(freed, l.id)), 0) < want
    ) THEN
        freed := NULL;
        RETURN;
    END IF;
    IF freed IS NOT NULL THEN
        UPDATE leases l SET queue_limit = NULL
        WHERE l.job = ANY (done_jobs) AND l.worker = who AND l.incarnation = whose;
    END IF;
    SELECT * INTO moment, asked, looked, given_jobs, given_attempts, given_leases, timeouts, idles,
                  specs, cursor_ranks, cursor_jobs, left_shapes, left_ranks, left_jobs, held
    FROM sync_plain(
        latest, who, whose, said, again, received, described,
        beat_ms, want, holds, new_state, slack_ms, least_attempt, refreshed_at, bound_ttl_ms,
        refresh_ms, following, probe_shapes, probe_ranks, probe_jobs, probe_counts,
        probe_depths, done_jobs, done_attempts, done_codes, done_results, one_attempt,
        one_code, one_result
    );
    IF moment IS NULL AND freed IS NOT NULL THEN
        RAISE EXCEPTION 'the sync needs the normal path after all' USING ERRCODE = 'WL001';
    ELSIF moment IS NULL THEN
        RETURN;
    END IF;
    SELECT array_agg(j.shape ORDER BY u.place) INTO given_shapes
    FROM unnest(given_jobs) WITH ORDINALITY AS u (job, place)
    CROSS JOIN LATERAL (SELECT shape FROM jobs WHERE jobs.id = u.job OFFSET 0) AS j;
    IF cardinality(limit_ids) > 0 AND given_shapes IS NOT NULL THEN
        UPDATE leases l SET queue_limit = p.limit_id
        FROM unnest(given_jobs, given_shapes) AS g (job, shape)
        JOIN unnest(limit_shapes, limit_ids) AS p (shape, limit_id) ON p.shape = g.shape
        WHERE l.job = g.job;
    END IF;
    PERFORM count_queue_limits(limit_shapes, limit_ids, given_shapes, freed);
END $$;
