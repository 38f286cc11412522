-- Submits one job in the caller's own transaction and returns the id it will have. A job is
-- described as in POST /api/v1/jobs: `{"task": "shell", "args": {"argv": ["echo", "hi"]}}`.
CREATE OR REPLACE FUNCTION submit(job json)
RETURNS bigint LANGUAGE plpgsql VOLATILE SET search_path = windlass, pg_temp AS $$
BEGIN
    RETURN (submit_many(json_build_object('jobs', json_build_array(job))))[1];
END $$;
REVOKE ALL ON FUNCTION submit(json) FROM PUBLIC;
