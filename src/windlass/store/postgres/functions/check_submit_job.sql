-- Raises unless a value looks like a job: an object with the name of a task, and known options of the
-- right form. The rules are made from `JobSpec`; a server checks what they cannot say. All of this is
-- one function because roles that may submit have a right to it.
CREATE OR REPLACE FUNCTION check_submit_job(job json) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    wrong record;
    called text := job -> 'args' ->> 'function';
BEGIN
    IF job IS NULL OR json_typeof(job) <> 'object' THEN
        RAISE EXCEPTION USING ERRCODE = 'WL002', MESSAGE = format(
            'expected a job to be a JSON object, got %s', left(job::text, 80));
    END IF;
    SELECT u.name INTO wrong FROM json_object_keys(job) AS u (name)
    WHERE u.name <> ALL (ARRAY[{job.options}]) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'WL002', MESSAGE = format(
            'expected a job to be described by known options, got %s', wrong.name);
    END IF;
    IF json_typeof(job -> 'task') IS DISTINCT FROM 'string' OR job ->> 'task' = '' THEN
        RAISE EXCEPTION USING ERRCODE = 'WL002', MESSAGE = format(
            'expected task to be the name of a task, got %s', job -> 'task');
    END IF;
    SELECT o.name, r.rule ->> 'expected' AS expected, v.text INTO wrong
    FROM json_each(job) AS o (name, value)
    JOIN jsonb_each({job.rules}) AS r (name, rule) ON r.name = o.name,
    LATERAL (SELECT json_typeof(o.value) AS kind, o.value #>> '{}' AS text) AS v
    WHERE NOT r.rule -> 'types' ? v.kind OR CASE v.kind
        WHEN 'string' THEN v.text !~* (r.rule ->> 'pattern') OR NOT r.rule -> 'choices' ? v.text
        WHEN 'number' THEN v.text::numeric < (r.rule ->> 'least')::numeric
            OR v.text::numeric > (r.rule ->> 'most')::numeric
            OR (r.rule ? 'whole' AND v.text::numeric <> trunc(v.text::numeric))
        WHEN 'array' THEN EXISTS (
            SELECT FROM json_array_elements(o.value) AS u (item)
            WHERE NOT r.rule -> 'items' ? json_typeof(u.item))
        WHEN 'object' THEN EXISTS (
            SELECT FROM json_each(o.value) AS u (name, value)
            WHERE NOT r.rule -> 'values' ? json_typeof(u.value) OR NOT r.rule -> 'fields' ? u.name)
        END
    ORDER BY o.name LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'WL002', MESSAGE = format(
            'expected %s to be %s, got %s', wrong.name, wrong.expected, left(wrong.text, 80));
    END IF;
    IF job ->> 'task' = 'shell' AND (CASE json_typeof(job -> 'args' -> 'argv')
        WHEN 'array' THEN json_array_length(job -> 'args' -> 'argv') = 0 ELSE true END)
    THEN
        RAISE EXCEPTION USING ERRCODE = 'WL002', MESSAGE = format(
            'expected args.argv to be a list: a program and its arguments, got %s',
            coalesce(left((job -> 'args' -> 'argv')::text, 80), 'nothing'));
    END IF;
    SELECT u.field, u.value INTO wrong FROM (
        SELECT format('argv[%s]', w.n - 1) AS field, w.value
        FROM json_array_elements(CASE json_typeof(job -> 'args' -> 'argv')
            WHEN 'array' THEN job -> 'args' -> 'argv' END) WITH ORDINALITY AS w (value, n)
        UNION ALL
        SELECT 'env.' || e.key, e.value FROM json_each(CASE
            json_typeof(job -> 'args' -> 'env') WHEN 'object' THEN job -> 'args' -> 'env' END) AS e
    ) AS u
    WHERE job ->> 'task' = 'shell' AND json_typeof(u.value) NOT IN ('string', 'object') LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'WL002', MESSAGE = format(
            'expected args.%s to be text, got %s', wrong.field, left(wrong.value::text, 80));
    END IF;
    IF job ->> 'task' = 'python' AND (called IS NULL OR called !~ '.:.') THEN
        RAISE EXCEPTION USING ERRCODE = 'WL002', MESSAGE = format(
            'expected args.function to be package.module:function, got %s',
            coalesce(left(called, 80), 'nothing'));
    END IF;
END $$;
REVOKE ALL ON FUNCTION check_submit_job(json) FROM PUBLIC;
