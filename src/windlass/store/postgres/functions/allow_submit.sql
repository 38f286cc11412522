-- Lets a role submit jobs in its transactions, to these namespaces only; `{*}` is all of them. The
-- role needs and gets no right on any table. Only the owner of the schema can call this.
CREATE OR REPLACE FUNCTION allow_submit(role_name text, namespaces text[] DEFAULT '{}')
RETURNS void LANGUAGE plpgsql SET search_path = windlass, pg_temp AS $$
BEGIN
    IF cardinality(allow_submit.namespaces) = 0 OR array_position(allow_submit.namespaces, NULL) > 0
    THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = format(
            'name the namespaces that %s may submit to, or {*} for all of them: '
            '`SELECT windlass.allow_submit(%L, ''{default}'')`', role_name, role_name);
    END IF;
    INSERT INTO submitters AS s
    VALUES (role_name, CASE WHEN '*' = ANY (allow_submit.namespaces) THEN '{}'
                       ELSE allow_submit.namespaces END)
    ON CONFLICT (role) DO UPDATE SET namespaces = excluded.namespaces;
    EXECUTE format('GRANT USAGE ON SCHEMA windlass TO %I', role_name);
    EXECUTE format('GRANT EXECUTE ON FUNCTION submit(json), submit_many(json), '
        'check_submit_job(json), submit_request(integer, text, json) TO %I', role_name);
END $$;
REVOKE ALL ON FUNCTION allow_submit(text, text[]) FROM PUBLIC;
