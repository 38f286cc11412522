-- Puts jobs into `inbox` in the caller's own transaction and returns the ids they will have. A
-- server turns the row into jobs after the commit; nothing that other transactions wait for is
-- locked until then. It has the rights of the schema's owner: callers need none on the tables.
--
-- `request` is the body of POST /api/v1/jobs, `facts` what is checked here: how many jobs, which
-- namespaces, and ids of jobs and workflows that they name. A server checks everything again.
-- `SET windlass.notify = off` is for transactions that PREPARE TRANSACTION: those must not notify.
CREATE OR REPLACE FUNCTION submit_request(protocol integer, request text, facts json)
RETURNS bigint[] LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = windlass, pg_temp SET enable_seqscan = on AS $$
DECLARE
    allowed text[] := submit_rights();
    own text := CASE WHEN cardinality(allowed) = 0 OR 'default' = ANY (allowed)
                THEN 'default' ELSE allowed[1] END;
    submitter text := 'role:' || session_user;
    wanted integer := (facts ->> 'count')::integer;
    refused text;
    ids bigint[];
BEGIN
    IF protocol <> {inbox.protocol} THEN
        RAISE EXCEPTION USING ERRCODE = 'WL001', MESSAGE = format(
            'the windlass schema of this database takes submissions of version '
            '{inbox.protocol}, this library sends version %s; install the same version of '
            'windlass here and on the servers, and run `windlass db upgrade`', protocol);
    END IF;
    IF wanted IS NULL OR wanted < 1 OR wanted > {inbox.most} THEN
        RAISE EXCEPTION USING ERRCODE = 'WL002', MESSAGE = format(
            'expected jobs to be from 1 to {inbox.most} in one submission, got %s', wanted);
    END IF;
    SELECT name INTO refused FROM json_array_elements_text(facts -> 'namespaces') AS u (name)
    WHERE cardinality(allowed) > 0 AND name <> ALL (allowed) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = format(
            'the role %s may not submit to namespace %s', session_user, refused);
    END IF;
    PERFORM request::json;
    PERFORM check_json_depth(request);
    PERFORM check_submit_references(facts, submitter, allowed, own);
    PERFORM check_submit_keys(facts, allowed, own);
    IF EXISTS (SELECT FROM timelines t WHERE t.timeline <> current_timeline()) THEN
        PERFORM jump_ids(windlass_now()); -- no server has seen yet that a standby took over
    END IF;
    SELECT array_agg(nextval('job_ids')) INTO ids FROM generate_series(1, wanted);
    INSERT INTO inbox (at, jobs, submitted_by, namespaces, body)
    VALUES (windlass_now(), ids, submitter, allowed, request);
    IF current_setting('windlass.notify', true) IS DISTINCT FROM 'off' THEN
        PERFORM pg_notify('windlass', 'inbox');
    END IF;
    RETURN ids;
END $$;
REVOKE ALL ON FUNCTION submit_request(integer, text, json) FROM PUBLIC;
