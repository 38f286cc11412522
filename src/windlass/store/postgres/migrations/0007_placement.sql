-- Placement: limits of queues, rates of keys, reservations, shares of namespaces.

ALTER TABLE queues ADD COLUMN max_running bigint NOT NULL DEFAULT 0;
ALTER TABLE queues ADD COLUMN max_per_worker bigint NOT NULL DEFAULT 0;
ALTER TABLE queues ADD COLUMN preempts smallint NOT NULL DEFAULT 0;
-- The row of `limits` that counts what runs of a queue.
ALTER TABLE queues ADD COLUMN limit_id bigint NOT NULL DEFAULT 0;

-- The limit of its queue that a lease counts under.
ALTER TABLE leases ADD COLUMN queue_limit bigint;

-- Leases whose worker is told to stop, also those that are running: they are preempted.
CREATE INDEX leases_told ON leases (worker) WHERE reason IS NOT NULL;

-- The newest starts of jobs under a rate, as JSON, oldest first.
CREATE TABLE rates (
    keep integer NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    starts text NOT NULL,
    PRIMARY KEY (namespace, key)
) WITH (fillfactor = 50);

-- Workers kept free for a large job: one worker a job, one job a worker.
CREATE TABLE reservations (
    worker bigint PRIMARY KEY,
    job bigint NOT NULL UNIQUE,
    shape integer NOT NULL,
    since bigint NOT NULL
);

CREATE TABLE namespace_weights (
    namespace text COLLATE "C" PRIMARY KEY,
    weight integer NOT NULL
);

-- What completed attempts took, per shape and measure; buckets is a JSON object.
CREATE TABLE statistics (
    values_seen bigint NOT NULL,
    total bigint NOT NULL,
    low bigint NOT NULL,
    high bigint NOT NULL,
    shape integer NOT NULL,
    measure smallint NOT NULL,
    buckets text NOT NULL,
    PRIMARY KEY (shape, measure)
) WITH (fillfactor = 50);

-- What a job's newest attempt took of its machine, where that is known.
CREATE TABLE usage (
    job bigint PRIMARY KEY,
    peak_memory bigint NOT NULL,
    attempt integer NOT NULL
);

-- Jobs that have to start or to end before a time.
CREATE TABLE deadlines (
    at bigint NOT NULL,
    job bigint NOT NULL,
    PRIMARY KEY (at, job)
);

-- What workers reported until then: a job is not refused for what is only missing today.
CREATE TABLE past_metadata (
    worker bigint NOT NULL,
    until bigint NOT NULL,
    digest text COLLATE "C" NOT NULL,
    dynamic text NOT NULL,
    PRIMARY KEY (worker, digest)
);

-- Leases that count under the limit of their queue are not plain.
CREATE OR REPLACE FUNCTION complete_plain(
    who bigint, whose bigint, moment bigint, done_jobs bigint[], done_attempts integer[],
    done_codes integer[], done_results bytea[], one_attempt integer, one_code integer,
    one_result bytea
) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    ended integer;
BEGIN
    WITH fit AS MATERIALIZED (
        SELECT l.job, l.attempt, l.assigned_at, l.started_at,
               coalesce(u.exit_code, one_code) AS exit_code,
               coalesce(u.result, one_result) AS result
        FROM unnest(done_jobs, done_attempts, done_codes, done_results)
             AS u (job, attempt, exit_code, result)
        -- One lookup for each job: without statistics the planner would walk all of the worker's.
        CROSS JOIN LATERAL (SELECT * FROM leases WHERE leases.job = u.job OFFSET 0) AS l
        WHERE l.attempt = coalesce(u.attempt, one_attempt) AND l.worker = who
          AND l.incarnation = whose AND l.state = 4 AND l.limit_id IS NULL
          AND l.queue_limit IS NULL
          AND NOT EXISTS (SELECT FROM dependents d WHERE d.job = u.job AND d.chunk = 0)
          AND NOT EXISTS (SELECT FROM waits w WHERE w.job = u.job)
    ), whole AS MATERIALIZED (
        SELECT FROM fit HAVING count(*) = cardinality(done_jobs)
    ), gone AS (
        DELETE FROM leases l USING whole, fit f WHERE l.job = f.job
    ), written AS (
        UPDATE jobs j SET state = 8, attempt = f.attempt, worker = who, incarnation = whose,
            assigned_at = f.assigned_at, started_at = f.started_at, finished_at = moment,
            failure = 0, exit_code = f.exit_code, message = NULL, reason = NULL,
            result = f.result
        FROM whole, fit f WHERE j.id = f.job
    )
    SELECT count(*) INTO ended FROM whole;
    RETURN ended = 1;
END $$;

-- The same for jobs with gates. The server has counted what the worker has room for; limits of
-- queues are locked and counted here, before the events get their numbers. Completions free their
-- places in a queue: `freed` names the limit of each. If there is less room than is wanted, or the
-- case is not common after all, nothing is written.
CREATE FUNCTION sync_gated(
    limit_shapes integer[], limit_ids bigint[],
    by_server text, by_slot smallint, latest bigint,
    who bigint, whose bigint, said bigint, again boolean, received bigint, described bytea,
    beat_ms bigint, want integer, new_state smallint, slack_ms bigint, least_attempt integer,
    refreshed_at bigint, bound_ttl_ms bigint, refresh_ms bigint, following bigint[],
    probe_shapes integer[], probe_ranks bigint[], probe_jobs bigint[], probe_counts integer[],
    probe_depths text[],
    done_jobs bigint[], done_attempts integer[], done_codes integer[], done_results bytea[],
    one_attempt integer, one_code integer, one_result bytea,
    OUT moment bigint, OUT asked integer, OUT looked boolean,
    OUT given_jobs bigint[], OUT given_attempts integer[], OUT given_leases bigint[],
    OUT timeouts bigint[], OUT idles bigint[], OUT specs bytea[],
    OUT cursor_ranks bigint[], OUT cursor_jobs bigint[],
    OUT left_shapes integer[], OUT left_ranks bigint[], OUT left_jobs bigint[],
    OUT given_shapes integer[], OUT freed bigint[]
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    done record;
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
    SELECT * INTO done FROM sync_plain(
        by_server, by_slot, latest, who, whose, said, again, received, described,
        beat_ms, want, new_state, slack_ms, least_attempt, refreshed_at, bound_ttl_ms,
        refresh_ms, following, probe_shapes, probe_ranks, probe_jobs, probe_counts,
        probe_depths, done_jobs, done_attempts, done_codes, done_results, one_attempt,
        one_code, one_result
    );
    IF done.moment IS NULL AND freed IS NOT NULL THEN
        RAISE EXCEPTION 'not common after all' USING ERRCODE = 'WL001';
    ELSIF done.moment IS NULL THEN
        RETURN;
    END IF;
    moment := done.moment;
    asked := done.asked;
    looked := done.looked;
    given_jobs := done.given_jobs;
    given_attempts := done.given_attempts;
    given_leases := done.given_leases;
    timeouts := done.timeouts;
    idles := done.idles;
    specs := done.specs;
    cursor_ranks := done.cursor_ranks;
    cursor_jobs := done.cursor_jobs;
    left_shapes := done.left_shapes;
    left_ranks := done.left_ranks;
    left_jobs := done.left_jobs;
    SELECT array_agg(j.shape ORDER BY u.place) INTO given_shapes
    FROM unnest(given_jobs) WITH ORDINALITY AS u (job, place)
    CROSS JOIN LATERAL (SELECT shape FROM jobs WHERE jobs.id = u.job OFFSET 0) AS j;
    IF cardinality(limit_ids) > 0 AND given_shapes IS NOT NULL THEN
        UPDATE leases l SET queue_limit = p.limit_id
        FROM unnest(given_jobs, given_shapes) AS g (job, shape)
        JOIN unnest(limit_shapes, limit_ids) AS p (shape, limit_id) ON p.shape = g.shape
        WHERE l.job = g.job;
    END IF;
    UPDATE limits l SET leased = l.leased + d.delta FROM (
        SELECT u.id, sum(u.delta) AS delta FROM (
            SELECT p.limit_id AS id, 1 AS delta FROM unnest(given_shapes) AS g (shape)
            JOIN unnest(limit_shapes, limit_ids) AS p (shape, limit_id) ON p.shape = g.shape
            UNION ALL SELECT f.id, -1 FROM unnest(freed) AS f (id)
        ) AS u GROUP BY u.id
    ) AS d WHERE l.id = d.id AND d.delta <> 0;
END $$;
