-- Appends the same transitions of many jobs: the steps along `path`, each step for all jobs before
-- the next one. Returns the number of the last event. `tries` is empty if all have `one_try`.
--
-- Jobs share a row if the rows of each know the time of the transition, by which its events are
-- found again (see `events_of_job`), and if no other transaction drew a number meanwhile.
CREATE OR REPLACE FUNCTION append_moves(
    moment bigint, moved bigint[], tries integer[], one_try integer, who bigint, whose bigint,
    path smallint[], why text, who_did text, more text
) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    width integer := cardinality(moved);
    steps integer := cardinality(path) - 1;
    numbers bigint[];
    newest bigint;
BEGIN
    IF width > {events.jobs_in_row} THEN -- a longer row would be stored apart
        FOR n IN 1 .. width BY {events.jobs_in_row} LOOP
            newest := append_moves(
                moment, moved[n : n + {events.jobs_in_row} - 1],
                tries[n : n + {events.jobs_in_row} - 1], one_try, who, whose, path, why, who_did, more
            );
        END LOOP;
        RETURN newest;
    END IF;
    -- The shared lock comes before the first number: see settled_events.py.
    PERFORM pg_advisory_xact_lock_shared(1464421956, 1);
    SELECT array_agg(nextval('event_numbers')) INTO numbers FROM generate_series(1, width * steps);
    newest := numbers[width * steps];
    IF newest - numbers[1] = width * steps - 1 AND steps <= 2 AND (
        width = 1 AND (steps = 1 OR path[1] = {state.queued} AND path[3] = {state.running})
        OR path[1] = {state.new}
        OR path[1] * 16 + path[steps + 1] = ANY (ARRAY[{transitions.usual}])
        OR steps = 1 AND path[2] >= {state.completed} AND path[2] <> {state.suspended}
    ) THEN
        INSERT INTO events (seq, at, kind, job, attempt, worker, incarnation, "from", via, "to",
                            reason, actor, data, jobs, attempts)
        VALUES (newest, moment, {event.job}, moved[1], coalesce(tries[1], one_try), who, whose,
                path[1], CASE WHEN steps = 2 THEN path[2] END, path[steps + 1],
                why, who_did, more, CASE WHEN width > 1 THEN moved END,
                CASE WHEN width > 1 AND cardinality(tries) > 0
                          AND tries <> array_fill(tries[1], ARRAY[width]) THEN tries END);
    ELSE
        INSERT INTO events (seq, at, kind, job, attempt, worker, incarnation, "from", "to",
                            reason, actor, data)
        SELECT numbers[(s.number - 1) * width + u.place], moment, {event.job}, u.job,
               coalesce(u.attempt, one_try), who, whose, path[s.number], path[s.number + 1],
               why, who_did, more
        FROM generate_series(1, steps) AS s (number)
        CROSS JOIN unnest(moved, tries) WITH ORDINALITY AS u (job, attempt, place);
    END IF;
    RETURN newest;
END $$;
