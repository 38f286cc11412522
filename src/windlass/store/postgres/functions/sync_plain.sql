-- Runs one worker's sync that reports only plain completions and claims only plain jobs (without
-- dependencies, limits or workflows). `moment` is NULL, and nothing is written, if the sync needs
-- more than that: the engine then runs the normal path. A sync that changes nothing locks nothing.
--
-- `holds` is how many leases the server believes the worker has at most (NULL: it does not know), and
-- `held` how many it has afterwards. They are counted only if that leaves less room than wanted, and
-- the worker's row is written only with its heartbeat: where a snapshot is held open elsewhere, the
-- dead entries of ended leases and the dead versions of such a row stay, and every sync would pass
-- all of them.
--
-- Locks come in the order of all transactions (worker, jobs, places); events come last.
--
-- What was found is certain up to the next shape's bound and the cursors of probes that have more.
-- If that is not enough, or the bounds are old and miss something, the normal path runs.
--
-- The body is long on purpose: split into functions of 70 lines it takes a tenth more CPU time.
CREATE OR REPLACE FUNCTION sync_plain(
    latest bigint, who bigint, whose bigint, said bigint,
    again boolean, received bigint, described bytea, beat_ms bigint, want integer, holds integer,
    new_state smallint, slack_ms bigint, least_attempt integer, refreshed_at bigint,
    bound_ttl_ms bigint, refresh_ms bigint, following bigint[], probe_shapes integer[],
    probe_ranks bigint[], probe_jobs bigint[], probe_counts integer[], probe_depths text[],
    done_jobs bigint[], done_attempts integer[], done_codes integer[], done_results bytea[],
    one_attempt integer, one_code integer, one_result bytea,
    OUT moment bigint, OUT asked integer, OUT looked integer, OUT given_jobs bigint[],
    OUT given_attempts integer[], OUT given_leases bigint[], OUT timeouts bigint[],
    OUT idles bigint[], OUT specs bytea[], OUT cursor_ranks bigint[], OUT cursor_jobs bigint[],
    OUT left_shapes integer[], OUT left_ranks bigint[], OUT left_jobs bigint[], OUT held integer
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    clock bigint := windlass_now();
    finishing integer := cardinality(done_jobs);
    found_some boolean;
    told record;
    began timestamptz;
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
    SELECT EXISTS (SELECT FROM leases l WHERE l.worker = who
             AND (l.state IN ({state.canceling}, {state.timed_out}) OR l.suspicion IS NOT NULL))
           OR want > 0 AND EXISTS (SELECT FROM due d WHERE d.at <= clock),
           CASE WHEN want <= 0 THEN false WHEN cardinality(probe_shapes) = 1 THEN EXISTS (
               SELECT FROM ready r WHERE r.shape = probe_shapes[1]
               AND (r.rank, r.job) >= (probe_ranks[1], probe_jobs[1])
           ) ELSE EXISTS (
               SELECT FROM unnest(probe_shapes, probe_ranks, probe_jobs) AS p (shape, rank, job)
               WHERE EXISTS (SELECT FROM ready r
                             WHERE r.shape = p.shape AND (r.rank, r.job) >= (p.rank, p.job))
           ) END
    INTO unfit, found_some;
    IF unfit THEN
        RETURN;
    END IF;
    writes := found_some OR finishing > 0;
    IF NOT writes THEN
        SELECT w.last_seen, w.slots INTO told FROM workers w
        WHERE w.id = who AND w.incarnation = whose AND w.status = {worker.online}
          AND w.seq + CASE WHEN again THEN 0 ELSE 1 END <= said
          AND sha256(convert_to(w.static || E'\n' || w.dynamic, 'UTF8')) = described;
        IF NOT FOUND THEN
            RETURN;
        END IF;
        writes := NOT again AND clock - told.last_seen >= beat_ms;
    END IF;
    IF writes THEN
        SELECT w.last_seen, w.slots INTO told FROM workers w
        WHERE w.id = who AND w.incarnation = whose AND w.status = {worker.online}
          AND w.seq + CASE WHEN again THEN 0 ELSE 1 END <= said
          AND sha256(convert_to(w.static || E'\n' || w.dynamic, 'UTF8')) = described
        FOR NO KEY UPDATE;
        IF NOT FOUND THEN
            RETURN;
        END IF;
    END IF;
    beats := NOT again AND clock - told.last_seen >= beat_ms;
    -- What the worker has not heard of is sent again, by the normal path.
    SELECT EXISTS (SELECT FROM leases l WHERE l.worker = who AND l.lease > received),
           CASE WHEN want <= told.slots - holds + finishing THEN holds
                WHEN want > 0 THEN (SELECT count(*) FROM leases l WHERE l.worker = who)
           END
    INTO unfit, held;
    IF unfit THEN
        RETURN;
    END IF;

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
    IF asked > 0 AND found_some AND cardinality(probe_shapes) = 1 THEN
        SELECT array_agg(r.shape), array_agg(r.rank), array_agg(r.job),
               array_agg(greatest(r.attempt + 1, least_attempt + r.attempt % {attempt.per_epoch})), array_agg(r.tied),
               array_agg(j.timeout_ms), array_agg(j.idle_ms), array_agg(j.spec),
               bool_or(has_references(j.spec) OR j.handed_back > 0)
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
        SELECT p.shapes, p.ranks, p.jobs, p.attempts, p.tied, p.cursor_ranks, p.cursor_jobs,
               p.full_at
        INTO shapes, ranks, given_jobs, given_attempts, tied, cursor_ranks, cursor_jobs, full_at
        FROM peek_shapes(asked, least_attempt, probe_shapes, probe_ranks, probe_jobs,
                         probe_counts) AS p;
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
        began := clock_timestamp();
        IF NOT probes_cover_ready(probe_shapes, probe_ranks, probe_jobs) THEN
            RETURN;
        END IF;
        looked := extract(epoch FROM clock_timestamp() - began) * 1000;
    END IF;
    left_shapes := shapes[taking + 1 :];
    left_ranks := ranks[taking + 1 :];
    left_jobs := given_jobs[taking + 1 :];
    given_jobs := given_jobs[:taking];
    given_attempts := given_attempts[:taking];

    IF taking > 0 AND (specs IS NULL OR taking < cardinality(specs)) THEN
        SELECT d.timeouts, d.idles, d.specs, d.unfit INTO timeouts, idles, specs, unfit
        FROM read_claimed(given_jobs) AS d;
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
                                started_at, deadline_at, timeout_ms, idle_ms)
            SELECT g.job, g.attempt, g.lease, who, whose, new_state, clock,
                   CASE WHEN new_state = {state.running} THEN clock END,
                   CASE WHEN new_state = {state.running}
                        THEN clock + least(g.timeout_ms, g.idle_ms) + slack_ms
                        ELSE clock + slack_ms END,
                   g.timeout_ms, g.idle_ms
            FROM given g
        )
        SELECT array_agg(g.lease ORDER BY g.place) INTO given_leases FROM given g;
    END IF;
    IF beats THEN
        UPDATE workers w SET seq = said, last_seen = clock,
            last_lease = greatest(w.last_lease, received, given_leases[taking])
        WHERE w.id = who;
    END IF;
    IF taking > 0 THEN
        INSERT INTO counters (name, value)
        SELECT p.depth, -count(*) FROM unnest(shapes[:taking]) AS c (shape)
        JOIN unnest(probe_shapes, probe_depths) AS p (shape, depth) ON p.shape = c.shape
        GROUP BY p.depth;
    END IF;
    IF finishing > 0 THEN
        PERFORM append_moves(
            clock, done_jobs, done_attempts, one_attempt, who, whose,
            ARRAY[{state.running}, {state.completed}]::smallint[], NULL, NULL, NULL
        );
    END IF;
    IF taking > 0 THEN
        -- Assigned, and then running unless the worker starts them itself.
        PERFORM append_moves(
            clock, given_jobs, given_attempts, NULL, who, whose,
            ARRAY[{state.queued}, {state.assigned}]::smallint[]
            || CASE WHEN new_state = {state.running} THEN ARRAY[new_state] END,
            NULL, NULL, NULL
        );
    END IF;
    held := held - finishing + taking;
    moment := clock;
END $$;
