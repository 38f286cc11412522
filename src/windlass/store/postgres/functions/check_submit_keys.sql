-- Raises if an open job has the key of a submitted one, and another task or other arguments. Other
-- conflicts of keys show when a server moves the jobs. Keys of namespaces that are not `allowed` are
-- not looked at: whoever calls this must not learn of them.
CREATE OR REPLACE FUNCTION check_submit_keys(facts json, allowed text[], own text)
RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
    taken record;
BEGIN
    SELECT u.field, u.key, j.id INTO taken
    FROM json_to_recordset(facts -> 'keys')
        AS u (field text, namespace text, key text, task text, args jsonb)
    JOIN keys k ON k.namespace = coalesce(u.namespace, own) AND k.key = u.key
    JOIN jobs j ON j.id = k.job AND j.state IS NULL,
        LATERAL (SELECT convert_from(j.spec, 'UTF8')::jsonb AS body) AS its
    WHERE (cardinality(allowed) = 0 OR k.namespace = ANY (allowed))
        AND (its.body ->> 'task' <> u.task
            OR coalesce(its.body -> 'args', 'null') <> coalesce(u.args, 'null'))
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'WL003', MESSAGE = format(
            '%s %L is used by job %s, which was submitted with other arguments',
            taken.field, taken.key, taken.id);
    END IF;
END $$;
REVOKE ALL ON FUNCTION check_submit_keys(json, text[], text) FROM PUBLIC;
