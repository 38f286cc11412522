-- Hot commands, each as one function: one round trip and one implicit transaction. They know
-- the common case only. Whatever is not that makes them write nothing and answer NULL, and the
-- engine goes its ordinary way, whose rules they repeat for nobody else.
--
-- Locks come in the order of all transactions (worker, jobs, places), events come last, after
-- the shared advisory lock that `append_events` takes as well.

-- Jobs without ties whose shapes are known. Ranks are relative to the time, which is known only
-- here. A submission's key that is known already is not the common case. `by_call` stays in the
-- counters of this connection, so that it can be found out whether a lost answer was a success.
-- After a quiet time other servers are told by the same transaction, which then waits for others
-- that tell as well; more often than the herald allows that would slow all commits down.
CREATE FUNCTION submit_plain(
    by_server text, by_slot smallint, by_call bigint, latest bigint, new_specs bytea[],
    new_shapes integer[], new_flags integer[], new_ranks bigint[], new_bases integer[],
    new_timeouts bigint[], new_idles bigint[], one_shape integer, one_flags integer,
    one_rank bigint, one_base integer, one_timeout bigint, one_idle bigint,
    depth_names text[], depth_values bigint[], key_spaces text[], key_names text[],
    key_digests text[], key_firsts integer[], key_counts integer[],
    tell_before text, tell_after text, tell_shapes integer[], tell_ranks bigint[],
    tell_firsts integer[], tell_counts integer[],
    OUT moment bigint, OUT ids bigint[]
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    taken integer;
BEGIN
    IF cardinality(key_names) > 0 AND EXISTS (
        SELECT FROM unnest(key_spaces, key_names) AS u (namespace, key)
        JOIN keys k ON k.namespace = u.namespace AND k.key = u.key
    ) THEN
        RETURN;
    END IF;
    moment := windlass_now();
    IF latest > moment AND latest - 60000 <= moment THEN
        moment := latest; -- a clock that is set back a little stands still
    END IF;
    SELECT array_agg(nextval('job_ids')) INTO ids
    FROM generate_series(1, cardinality(new_specs));
    IF cardinality(key_names) > 0 THEN
        INSERT INTO keys (namespace, key, job, digest)
        SELECT u.namespace, u.key, ids[u.first], u.digest || '/' || (
            SELECT string_agg(s.low || '-' || s.high, ',' ORDER BY s.low)
            FROM (SELECT min(i.id) AS low, max(i.id) AS high
                  FROM (SELECT o.id, o.id - row_number() OVER (ORDER BY o.id) AS island
                        FROM unnest(ids[u.first : u.first + u.count - 1]) AS o (id)) AS i
                  GROUP BY i.island) AS s)
        FROM unnest(key_spaces, key_names, key_digests, key_firsts, key_counts)
             AS u (namespace, key, digest, first, count)
        ORDER BY u.namespace COLLATE "C", u.key COLLATE "C"
        ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS taken = ROW_COUNT;
        IF taken < cardinality(key_names) THEN
            RAISE EXCEPTION 'a key was taken at this moment' USING ERRCODE = 'WL001';
        END IF;
    END IF;
    WITH entered AS (
        INSERT INTO jobs (id, spec, shape, flags, rank, base, adjustment, age_from, created_at,
                          timeout_ms, idle_ms)
        SELECT u.id, u.spec, coalesce(u.shape, one_shape), coalesce(u.flags, one_flags),
               coalesce(u.rank, one_rank) + moment, coalesce(u.base, one_base), 0, moment, moment,
               nullif(coalesce(u.timeout_ms, one_timeout), 0),
               nullif(coalesce(u.idle_ms, one_idle), 0)
        FROM unnest(ids, new_specs, new_shapes, new_flags, new_ranks, new_bases, new_timeouts,
                    new_idles) AS u (id, spec, shape, flags, rank, base, timeout_ms, idle_ms)
        RETURNING jobs.shape, jobs.rank, jobs.id
    )
    INSERT INTO ready (shape, rank, job, attempt) SELECT e.shape, e.rank, e.id, 0 FROM entered e;
    INSERT INTO counters (server, slot, name, value, call)
    SELECT by_server, by_slot, u.name, u.delta, by_call
    FROM unnest(depth_names, depth_values) AS u (name, delta)
    ON CONFLICT (server, slot, name)
    DO UPDATE SET value = counters.value + excluded.value, call = excluded.call;
    IF tell_before IS NOT NULL THEN
        PERFORM pg_notify('windlass', tell_before || string_agg(
            format('[%s,%s,%s,%s]', u.shape, u.rank + moment, ids[u.first], u.count), ','
        ) || tell_after)
        FROM unnest(tell_shapes, tell_ranks, tell_firsts, tell_counts)
             AS u (shape, rank, first, count);
    END IF;
    PERFORM pg_advisory_xact_lock_shared(1464421956, 1);
    INSERT INTO events (at, kind, job, attempt, "from", "to")
    SELECT moment, 1, u.id, 0, 0, 2 FROM unnest(ids) AS u (id);
END $$;

-- Whether `ready` holds nothing better than where the probes begin: nothing was overlooked.
CREATE FUNCTION probes_cover_ready(shapes integer[], ranks bigint[], jobs bigint[])
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

-- Completions on which nothing hangs, all of them or none. `sync_plain` holds the rows of
-- `jobs`, so what is seen of leases and dependents stays true. State 4 is running, 8 completed.
CREATE FUNCTION complete_plain(
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

-- One worker's sync that reports nothing but plain completions and claims jobs without ties;
-- `moment` is NULL where that is not all of it. A sync that changes nothing locks nothing.
--
-- Tickets are sure up to the next shape's bound and the cursors of probes that have more. If
-- they do not suffice, or the bounds are old and overlook something, the ordinary way goes on.
CREATE FUNCTION sync_plain(
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
    OUT left_shapes integer[], OUT left_ranks bigint[], OUT left_jobs bigint[]
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    clock bigint := windlass_now();
    finishing integer := cardinality(done_jobs);
    found_some boolean;
    held integer;
    told record;
    writes boolean;
    beats boolean;
    bound bigint[] := following;
    taking integer := 0;
    number integer;
    unfit boolean;
    shapes integer[];
    ranks bigint[];
    tied boolean[];
    full_at bigint[];
BEGIN
    IF latest > clock AND latest - 60000 <= clock THEN
        clock := latest; -- a clock that is set back a little stands still
    END IF;
    -- What others change of this before the worker is locked shows in its row, or does no harm.
    SELECT EXISTS (SELECT FROM leases l WHERE l.worker = who AND l.state IN (5, 6))
           OR want > 0 AND EXISTS (SELECT FROM due d WHERE d.at <= clock),
           CASE WHEN want > 0 THEN (SELECT count(*) FROM leases l WHERE l.worker = who) END,
           CASE WHEN want <= 0 THEN false WHEN cardinality(probe_shapes) = 1 THEN EXISTS (
               SELECT FROM ready r WHERE r.shape = probe_shapes[1]
               AND (r.rank, r.job) >= (probe_ranks[1], probe_jobs[1])
           ) ELSE EXISTS (
               SELECT FROM unnest(probe_shapes, probe_ranks, probe_jobs) AS p (shape, rank, job)
               WHERE EXISTS (SELECT FROM ready r
                             WHERE r.shape = p.shape AND (r.rank, r.job) >= (p.rank, p.job))
           ) END
    INTO unfit, held, found_some;
    IF unfit THEN
        RETURN;
    END IF;
    writes := found_some OR finishing > 0;
    IF NOT writes THEN
        SELECT w.last_seen, w.slots INTO told FROM workers w
        WHERE w.id = who AND w.incarnation = whose AND w.status = 1
          AND w.seq + CASE WHEN again THEN 0 ELSE 1 END <= said AND w.last_lease <= received
          AND sha256(convert_to(w.static || E'\n' || w.dynamic, 'UTF8')) = described;
        IF NOT FOUND THEN
            RETURN;
        END IF;
        writes := NOT again AND clock - told.last_seen >= beat_ms;
    END IF;
    IF writes THEN
        SELECT w.last_seen, w.slots INTO told FROM workers w
        WHERE w.id = who AND w.incarnation = whose AND w.status = 1
          AND w.seq + CASE WHEN again THEN 0 ELSE 1 END <= said AND w.last_lease <= received
          AND sha256(convert_to(w.static || E'\n' || w.dynamic, 'UTF8')) = described
        FOR NO KEY UPDATE;
        IF NOT FOUND THEN
            RETURN;
        END IF;
    END IF;
    beats := NOT again AND clock - told.last_seen >= beat_ms;

    IF finishing > 0 THEN
        WITH locked AS MATERIALIZED (
            SELECT j.workflow FROM jobs j WHERE j.id = ANY (done_jobs)
            ORDER BY j.id FOR NO KEY UPDATE
        )
        SELECT count(*) INTO number FROM locked k WHERE k.workflow IS NULL;
        IF number < finishing THEN
            RETURN;
        END IF;
    END IF;

    asked := coalesce(greatest(0, least(want, told.slots - held + finishing)), 0);
    looked := false;
    IF asked > 0 AND found_some AND cardinality(probe_shapes) = 1 THEN
        SELECT array_agg(r.shape), array_agg(r.rank), array_agg(r.job),
               array_agg(greatest(r.attempt + 1, least_attempt)), array_agg(r.tied),
               array_agg(j.timeout_ms), array_agg(j.idle_ms), array_agg(j.spec),
               bool_or(position('"$lookup"'::bytea IN j.spec) > 0)
        INTO shapes, ranks, given_jobs, given_attempts, tied, timeouts, idles, specs, unfit
        FROM (
            SELECT shape, rank, job, attempt,
                   workflow IS NOT NULL OR limit_id IS NOT NULL OR excluded IS NOT NULL AS tied
            FROM ready
            WHERE shape = probe_shapes[1] AND (rank, job) >= (probe_ranks[1], probe_jobs[1])
            ORDER BY rank, job LIMIT least(probe_counts[1], asked) FOR UPDATE SKIP LOCKED
        ) AS r CROSS JOIN LATERAL (SELECT * FROM jobs WHERE jobs.id = r.job OFFSET 0) AS j;
        taking := coalesce(cardinality(given_jobs), 0);
        cursor_ranks := ARRAY[NULL];
        cursor_jobs := ARRAY[NULL];
        IF taking = least(probe_counts[1], asked) THEN
            cursor_ranks := ARRAY[ranks[taking]];
            cursor_jobs := ARRAY[given_jobs[taking] + 1];
            bound := least(bound, ARRAY[ranks[taking], given_jobs[taking] + 1]);
        END IF;
    ELSIF asked > 0 AND found_some THEN
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
                   array_agg(greatest(k.attempt + 1, least_attempt) ORDER BY k.rank, k.job)
                       AS attempts,
                   array_agg(k.tied ORDER BY k.rank, k.job) AS tied
            FROM peeked k
        )
        SELECT s.shapes, s.ranks, s.jobs, s.attempts, s.tied, c.by_rank, c.by_job, c.lowest
        INTO shapes, ranks, given_jobs, given_attempts, tied, cursor_ranks, cursor_jobs, full_at
        FROM sorted s, cursors c;
        bound := least(bound, CASE WHEN full_at[1] IS NOT NULL THEN full_at END);
        taking := coalesce(cardinality(given_jobs), 0);
    END IF;
    IF taking > 0 AND ARRAY[ranks[taking], given_jobs[taking]] > bound THEN
        SELECT count(*) INTO taking FROM unnest(ranks, given_jobs) AS u (rank, job)
        WHERE ARRAY[u.rank, u.job] <= bound;
    END IF;
    taking := least(taking, asked);
    IF taking < asked AND bound IS NOT NULL OR true = ANY (tied[:taking]) THEN
        RETURN;
    END IF;
    IF asked > 0 AND clock - refreshed_at
       >= (CASE WHEN taking < asked THEN refresh_ms ELSE bound_ttl_ms + 1 END) THEN
        looked := probes_cover_ready(probe_shapes, probe_ranks, probe_jobs);
        IF NOT looked THEN
            RETURN;
        END IF;
    END IF;
    left_shapes := shapes[taking + 1 :];
    left_ranks := ranks[taking + 1 :];
    left_jobs := given_jobs[taking + 1 :];
    given_jobs := given_jobs[:taking];
    given_attempts := given_attempts[:taking];

    IF taking > 0 AND (specs IS NULL OR taking < cardinality(specs)) THEN
        SELECT array_agg(j.timeout_ms ORDER BY u.place), array_agg(j.idle_ms ORDER BY u.place),
               array_agg(j.spec ORDER BY u.place),
               bool_or(position('"$lookup"'::bytea IN j.spec) > 0)
        INTO timeouts, idles, specs, unfit
        FROM unnest(given_jobs) WITH ORDINALITY AS u (job, place) JOIN jobs j ON j.id = u.job;
    END IF;
    IF unfit AND taking > 0 THEN
        RETURN;
    END IF;
    IF finishing > 0 AND NOT complete_plain(
        who, whose, clock, done_jobs, done_attempts, done_codes, done_results, one_attempt,
        one_code, one_result
    ) THEN
        RETURN;
    END IF;

    IF taking > 0 THEN
        WITH given AS MATERIALIZED (
            SELECT u.*, nextval('lease_numbers') AS lease
            FROM unnest(given_jobs, given_attempts, shapes[:taking], ranks[:taking], timeouts,
                        idles) WITH ORDINALITY
                 AS u (job, attempt, shape, rank, timeout_ms, idle_ms, place)
        ), taken AS (
            DELETE FROM ready r USING given g
            WHERE r.shape = g.shape AND r.rank = g.rank AND r.job = g.job
        ), leased AS (
            INSERT INTO leases (job, attempt, lease, worker, incarnation, state, assigned_at,
                                started_at, activity_at, deadline_at, timeout_ms, idle_ms)
            SELECT g.job, g.attempt, g.lease, who, whose, new_state, clock,
                   CASE WHEN new_state = 4 THEN clock ELSE 0 END, 0,
                   CASE WHEN new_state = 4
                        THEN coalesce(clock + least(g.timeout_ms, g.idle_ms) + slack_ms, 0)
                        ELSE clock + slack_ms END,
                   g.timeout_ms, g.idle_ms
            FROM given g
        )
        SELECT array_agg(g.lease ORDER BY g.place) INTO given_leases FROM given g;
    END IF;
    IF beats OR taking > 0 OR finishing > 0 THEN
        UPDATE workers w SET
            seq = CASE WHEN taking > 0 OR finishing > 0 THEN said ELSE w.seq END,
            last_seen = CASE WHEN beats THEN clock ELSE w.last_seen END,
            last_lease = CASE WHEN taking > 0 THEN given_leases[taking] ELSE w.last_lease END
        WHERE w.id = who;
    END IF;
    IF taking > 0 AND cardinality(probe_depths) = 1 THEN
        INSERT INTO counters (server, slot, name, value)
        VALUES (by_server, by_slot, probe_depths[1], -taking)
        ON CONFLICT (server, slot, name) DO UPDATE SET value = counters.value + excluded.value;
    ELSIF taking > 0 THEN
        INSERT INTO counters (server, slot, name, value)
        SELECT by_server, by_slot, p.depth, -sum(c.count)
        FROM (SELECT u.shape, count(*) AS count FROM unnest(shapes[:taking]) AS u (shape)
              GROUP BY u.shape) AS c
        JOIN unnest(probe_shapes, probe_depths) AS p (shape, depth) ON p.shape = c.shape
        GROUP BY p.depth ORDER BY p.depth
        ON CONFLICT (server, slot, name) DO UPDATE SET value = counters.value + excluded.value;
    END IF;
    IF taking > 0 OR finishing > 0 THEN
        PERFORM pg_advisory_xact_lock_shared(1464421956, 1);
    END IF;
    IF finishing > 0 THEN
        INSERT INTO events (at, kind, job, attempt, worker, incarnation, "from", "to")
        SELECT clock, 1, u.job, coalesce(u.attempt, one_attempt), who, whose, 4, 8
        FROM unnest(done_jobs, done_attempts) AS u (job, attempt);
    END IF;
    IF taking > 0 THEN
        -- Assigned (3), and then, unless the worker starts them itself, running (4).
        INSERT INTO events (at, kind, job, attempt, worker, incarnation, "from", "to")
        SELECT clock, 1, u.job, u.attempt, who, whose, u.step, u.step + 1
        FROM unnest(given_jobs || CASE WHEN new_state = 4 THEN given_jobs END,
                    given_attempts || CASE WHEN new_state = 4 THEN given_attempts END,
                    array_fill(2, ARRAY[taking])
                    || CASE WHEN new_state = 4 THEN array_fill(3, ARRAY[taking]) END)
             AS u (job, attempt, step);
    END IF;
    moment := clock;
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
