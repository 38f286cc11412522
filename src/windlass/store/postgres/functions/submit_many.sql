-- Submits jobs in the caller's own transaction: `{"jobs": [...], "workflow": {...}}`, as the body
-- of POST /api/v1/jobs. Returns the ids they will have, in the order of the jobs if
-- each comes after those it names.
CREATE OR REPLACE FUNCTION submit_many(request json)
RETURNS bigint[] LANGUAGE plpgsql VOLATILE SET search_path = windlass, pg_temp AS $$
DECLARE
    named text;
    facts json;
BEGIN
    IF request IS NULL OR json_typeof(request -> 'jobs') IS DISTINCT FROM 'array' THEN
        RAISE EXCEPTION USING ERRCODE = 'WL002', MESSAGE =
            'expected a submission to be an object with a list of jobs';
    END IF;
    SELECT name INTO named FROM json_object_keys(request) AS u (name)
    WHERE name NOT IN ('jobs', 'workflow') LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'WL002', MESSAGE = format(
            'expected a submission to have jobs and perhaps a workflow, got %s', named);
    END IF;
    PERFORM check_submit_job(job) FROM json_array_elements(request -> 'jobs') AS u (job);
    WITH each AS (
        SELECT job, coalesce(job ->> 'namespace', request -> 'workflow' ->> 'namespace') AS space
        FROM json_array_elements(request -> 'jobs') AS u (job)
    ), references_of AS (
        SELECT field, (its #>> '{}')::bigint AS id, space AS namespace
        FROM each, unnest(ARRAY['after', 'after_any']) AS f (field),
            json_array_elements(CASE json_typeof(job -> field) WHEN 'array' THEN job -> field END)
                AS r (its)
        WHERE json_typeof(its) = 'number'
        UNION ALL
        SELECT 'parent', (job ->> 'parent')::bigint, '*' FROM each
        WHERE json_typeof(job -> 'parent') = 'number'
    )
    SELECT json_build_object(
        'count', (SELECT count(*) FROM each),
        'namespaces', (SELECT coalesce(json_agg(DISTINCT space), '[]') FROM each
                       WHERE space IS NOT NULL),
        'jobs', (SELECT coalesce(json_agg(r), '[]') FROM references_of r),
        'workflows', (
            SELECT coalesce(json_agg(json_build_object(
                'field', 'workflow', 'id', job ->> 'workflow', 'namespace', space)), '[]')
            FROM each WHERE json_typeof(job -> 'workflow') = 'number')
    ) INTO facts;
    RETURN submit_request({inbox.protocol}, request::text, facts);
END $$;
REVOKE ALL ON FUNCTION submit_many(json) FROM PUBLIC;
