-- Completes jobs without dependents, all of them or none. `sync_plain` holds the rows of `jobs`,
-- so what is seen of leases and dependents stays true.
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
          AND l.incarnation = whose AND l.state = {state.running} AND l.limit_id IS NULL
          AND l.queue_limit IS NULL
          AND NOT EXISTS (SELECT FROM dependents d WHERE d.job = u.job AND d.chunk = 0)
          AND NOT EXISTS (SELECT FROM waits w WHERE w.job = u.job)
    ), whole AS MATERIALIZED (
        SELECT FROM fit HAVING count(*) = cardinality(done_jobs)
    ), gone AS (
        DELETE FROM leases l USING whole, fit f WHERE l.job = f.job
    ), written AS (
        UPDATE jobs j SET state = {state.completed}, attempt = f.attempt, worker = who,
            incarnation = whose, assigned_at = f.assigned_at, started_at = f.started_at,
            finished_at = moment, failure = {failure.none}, exit_code = f.exit_code,
            message = NULL, reason = NULL, result = f.result
        FROM whole, fit f WHERE j.id = f.job
    )
    SELECT count(*) INTO ended FROM whole;
    RETURN ended = 1;
END $$;
