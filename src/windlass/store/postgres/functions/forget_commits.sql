-- Empties the table that `note_commit` does not write to at the moment, once all it has is older than
-- five minutes. What is not found is unknown from then on if it began by the time in `meta`.
CREATE OR REPLACE FUNCTION forget_commits() RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    moment bigint := windlass_now();
    old text := CASE moment / 1200000 % 2 WHEN 0 THEN 'commits_odd' ELSE 'commits_even' END;
    found boolean;
BEGIN
    EXECUTE format('SELECT EXISTS (SELECT FROM %I)', old) INTO found;
    IF moment % 1200000 < 300000 OR NOT found THEN
        RETURN;
    END IF;
    EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE NOWAIT', old);
    EXECUTE format(
        'INSERT INTO meta (name, value) SELECT %L, max(at) FROM %I HAVING count(*) > 0 '
        'ON CONFLICT (name) DO UPDATE SET value = greatest(meta.value, excluded.value)',
        'commits_forgotten', old);
    EXECUTE format('TRUNCATE %I', old);
EXCEPTION WHEN lock_not_available THEN
    RETURN; -- it is read at this moment, by pg_dump for example
END $$;
