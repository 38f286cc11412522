-- Returns the namespaces that the session's role may submit to, empty for all; raises if none. It is
-- called by a function with the rights of the schema's owner: members of that role may do anything.
CREATE OR REPLACE FUNCTION submit_rights() RETURNS text[] LANGUAGE plpgsql STABLE AS $$
DECLARE
    granted text[];
BEGIN
    SELECT namespaces INTO granted FROM submitters WHERE role = session_user;
    IF NOT FOUND THEN
        IF NOT pg_has_role(session_user, current_user, 'MEMBER') THEN
            RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = format(
                'the role %s may not submit jobs; the owner of the schema runs '
                '`windlass db allow-submit %s --namespace default`', session_user, session_user);
        END IF;
        granted := '{}';
    END IF;
    RETURN granted;
END $$;
REVOKE ALL ON FUNCTION submit_rights() FROM PUBLIC;
