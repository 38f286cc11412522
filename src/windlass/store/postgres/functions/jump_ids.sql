-- Lets all ids go on after the number it returns, where nobody has been (see domain/rows/gaps.py).
-- Sequences know no transactions: the jump stays even if its caller rolls back, and does no harm.
-- The lock keeps two callers from setting a sequence back behind what one of them has given.
CREATE OR REPLACE FUNCTION jump_ids(moment bigint)
RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    after bigint;
BEGIN
    PERFORM pg_advisory_lock(1464421956, 4);
    SELECT greatest(coalesce(max(s.last_value), 0) + {gap.margin},
                    (moment - {gap.begin_ms}) * {gap.per_ms})
    INTO after
    FROM pg_sequences s WHERE s.schemaname = 'windlass' AND s.sequencename <> 'shape_ids';
    PERFORM setval(format('windlass.%I', s.sequencename)::regclass, after)
    FROM pg_sequences s WHERE s.schemaname = 'windlass' AND s.sequencename <> 'shape_ids';
    PERFORM setval('windlass.shape_ids', nextval('windlass.shape_ids') - 1 + {gap.shape_margin});
    PERFORM pg_advisory_unlock(1464421956, 4);
    RETURN after;
END $$;
REVOKE ALL ON FUNCTION jump_ids(bigint) FROM PUBLIC;
