-- The number from which on events are as young as this time, by bisecting the log. Transactions draw
-- numbers after their time, so it may be off by as long as they take.
CREATE OR REPLACE FUNCTION first_event_since(moment bigint) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
    low bigint;
    high bigint;
    middle bigint;
    seen record;
BEGIN
    SELECT min(seq), max(seq) + 1 INTO low, high FROM events;
    WHILE low < high LOOP
        middle := (low + high) / 2;
        SELECT e.seq, e.at INTO seen FROM events e WHERE e.seq >= middle ORDER BY e.seq LIMIT 1;
        IF seen.at < moment THEN
            low := seen.seq + 1;
        ELSE
            high := middle;
        END IF;
    END LOOP;
    RETURN low;
END $$;
