-- Notes that this transaction is committed, which shows as soon as it is. One that has written
-- nothing is noted only if `always`: then its COMMIT waits until all that it saw is durable.
CREATE OR REPLACE FUNCTION note_commit(mark bigint, at bigint, always boolean)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF NOT always AND pg_current_xact_id_if_assigned() IS NULL THEN
        RETURN;
    END IF;
    IF windlass_now() / 1200000 % 2 = 0 THEN
        INSERT INTO commits_even VALUES (mark, at);
    ELSE
        INSERT INTO commits_odd VALUES (mark, at);
    END IF;
END $$;
