-- Takes back what `allow_submit` gave. What the role has committed before is still carried out.
CREATE OR REPLACE FUNCTION forbid_submit(role_name text)
RETURNS void LANGUAGE plpgsql SET search_path = windlass, pg_temp AS $$
BEGIN
    DELETE FROM submitters WHERE role = role_name;
    EXECUTE format('REVOKE EXECUTE ON FUNCTION submit(json), submit_many(json), '
        'check_submit_job(json), submit_request(integer, text, json) FROM %I', role_name);
    EXECUTE format('REVOKE USAGE ON SCHEMA windlass FROM %I', role_name);
END $$;
REVOKE ALL ON FUNCTION forbid_submit(text) FROM PUBLIC;
