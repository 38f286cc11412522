-- Raises unless the jobs and workflows that a submission names exist for it: in its own namespace,
-- or, as a parent ("*"), in any that its submitter may use. A job may still be in `inbox`.
CREATE OR REPLACE FUNCTION check_submit_references(
    facts json, submitter text, allowed text[], own text
) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
    missing record;
BEGIN
    SELECT u.field, u.id INTO missing
    FROM json_to_recordset(facts -> 'jobs') AS u (field text, id bigint, namespace text)
    WHERE NOT EXISTS (
        SELECT FROM jobs j JOIN shapes s ON s.id = j.shape,
            LATERAL (SELECT convert_from(s.body, 'UTF8')::json ->> 'namespace' AS name) AS its
        WHERE j.id = u.id AND CASE WHEN u.namespace = '*'
            THEN cardinality(allowed) = 0 OR its.name = ANY (allowed)
            ELSE its.name = coalesce(u.namespace, own) END
    ) AND NOT EXISTS (
        SELECT FROM inbox i WHERE i.jobs[cardinality(i.jobs)] >= u.id AND i.jobs[1] <= u.id
            AND u.id = ANY (i.jobs) AND i.submitted_by = submitter
    ) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'WL002', MESSAGE = format(
            'expected %s to be the id of an existing job, got %s', missing.field, missing.id);
    END IF;
    SELECT u.field, u.id INTO missing
    FROM json_to_recordset(facts -> 'workflows') AS u (field text, id bigint, namespace text)
    WHERE NOT EXISTS (
        SELECT FROM workflows w WHERE w.id = u.id AND w.namespace = coalesce(u.namespace, own)
            AND w.state < {workflow.completed}
    ) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'WL002', MESSAGE = format(
            'expected %s to be the id of a workflow that has not ended, got %s',
            missing.field, missing.id);
    END IF;
END $$;
REVOKE ALL ON FUNCTION check_submit_references(json, text, text[], text) FROM PUBLIC;
