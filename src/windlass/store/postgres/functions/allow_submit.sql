-- Lets a role submit jobs in its transactions, to these namespaces only, or to all without any. The
-- role needs and gets no right on any table. Only the owner of the schema can call this.
CREATE OR REPLACE FUNCTION allow_submit(role_name text, namespaces text[] DEFAULT '{}')
RETURNS void LANGUAGE plpgsql SET search_path = windlass, pg_temp AS $$
BEGIN
    INSERT INTO submitters AS s VALUES (role_name, allow_submit.namespaces)
    ON CONFLICT (role) DO UPDATE SET namespaces = excluded.namespaces;
    EXECUTE format('GRANT USAGE ON SCHEMA windlass TO %I', role_name);
    EXECUTE format('GRANT EXECUTE ON FUNCTION submit(json), submit_many(json), '
        'check_submit_job(json), submit_request(integer, text, json) TO %I', role_name);
END $$;
REVOKE ALL ON FUNCTION allow_submit(text, text[]) FROM PUBLIC;
