-- Raises unless a value looks like a job: an object with known fields and the name of a task.
CREATE OR REPLACE FUNCTION check_submit_job(job json) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    field text;
BEGIN
    IF job IS NULL OR json_typeof(job) <> 'object' THEN
        RAISE EXCEPTION USING ERRCODE = 'WL002', MESSAGE = format(
            'expected a job to be a JSON object, got %s', left(job::text, 80));
    END IF;
    SELECT name INTO field FROM json_object_keys(job) AS u (name)
    WHERE name <> ALL (ARRAY[{job.options}]) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'WL002', MESSAGE = format(
            'expected a job to be described by known options, got %s', field);
    END IF;
    IF json_typeof(job -> 'task') IS DISTINCT FROM 'string' OR job ->> 'task' = '' THEN
        RAISE EXCEPTION USING ERRCODE = 'WL002', MESSAGE = format(
            'expected task to be the name of a task, got %s', job -> 'task');
    END IF;
END $$;
REVOKE ALL ON FUNCTION check_submit_job(json) FROM PUBLIC;
