-- Submits jobs without dependencies, limits or workflows whose shapes are known. Answers NULL and
-- writes nothing if a submission's key is known already: the engine then runs the normal path.
-- Ranks are relative to the time, which is known only here. `own_mark` is for `note_commit`, with
-- `latest` as the time before.
-- Nobody is notified if the sender is the `first_listener` and nobody else does (see news.py).
-- Else, after a quiet time, the same transaction notifies other servers. That makes it wait for
-- others that notify, so doing it more often than the herald allows would slow all commits down.
CREATE OR REPLACE FUNCTION submit_plain(
    own_mark bigint, latest bigint, how_many integer,
    new_shapes integer[], new_flags integer[], new_ranks bigint[], new_bases integer[],
    new_timeouts bigint[], new_idles bigint[], new_specs bytea[], one_shape integer,
    one_flags integer, one_rank bigint, one_base integer, one_timeout bigint, one_idle bigint,
    one_spec bytea,
    depth_names text[], depth_values bigint[], key_spaces text[], key_names text[],
    key_digests text[], key_firsts integer[], key_counts integer[],
    first_listener boolean, tell_before text, tell_after text, tell_shapes integer[], tell_ranks bigint[],
    tell_firsts integer[], tell_counts integer[],
    OUT moment bigint, OUT ids bigint[], OUT alone boolean
) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF cardinality(key_names) > 0 THEN
        PERFORM FROM unnest(key_spaces, key_names) AS u (namespace, key)
        JOIN keys k ON k.namespace = u.namespace AND k.key = u.key;
        IF FOUND THEN
            RETURN;
        END IF;
    END IF;
    moment := windlass_now();
    IF latest > moment AND latest - 60000 <= moment THEN
        moment := latest; -- a clock that is set back a little stands still
    END IF;
    SELECT array_agg(nextval('job_ids')) INTO ids
    FROM generate_series(1, how_many);
    IF cardinality(key_names) > 0 THEN
        PERFORM take_submission_keys(
            ids, key_spaces, key_names, key_digests, key_firsts, key_counts
        );
    END IF;
    WITH entered AS (
        INSERT INTO jobs (id, spec, shape, flags, rank, base, adjustment, age_from, created_at,
                          timeout_ms, idle_ms)
        SELECT u.id, coalesce(u.spec, one_spec), coalesce(u.shape, one_shape), coalesce(u.flags, one_flags),
               coalesce(u.rank, one_rank) + moment, coalesce(u.base, one_base), 0, moment, moment,
               coalesce(u.timeout_ms, one_timeout),
               coalesce(u.idle_ms, one_idle)
        FROM unnest(ids, new_shapes, new_flags, new_ranks, new_bases, new_timeouts, new_idles,
                    new_specs) AS u (id, shape, flags, rank, base, timeout_ms, idle_ms, spec)
        RETURNING jobs.shape, jobs.rank, jobs.id
    )
    INSERT INTO ready (shape, rank, job, attempt) SELECT e.shape, e.rank, e.id, 0 FROM entered e;
    INSERT INTO counters (name, value)
    SELECT u.name, u.delta FROM unnest(depth_names, depth_values) AS u (name, delta);
    PERFORM note_commit(own_mark, latest, true);
    alone := first_listener AND pg_try_advisory_xact_lock(1464421956, 8);
    IF tell_before IS NOT NULL AND NOT alone THEN
        PERFORM pg_notify('windlass', tell_before || string_agg(
            format('[%s,%s,%s,%s]', u.shape, u.rank + moment, ids[u.first], u.count), ','
        ) || tell_after)
        FROM unnest(tell_shapes, tell_ranks, tell_firsts, tell_counts)
             AS u (shape, rank, first, count);
    END IF;
    PERFORM append_moves(moment, ids, '{}', 0, NULL, NULL,
                         ARRAY[{state.new}, {state.queued}]::smallint[], NULL, NULL, NULL);
END $$;
