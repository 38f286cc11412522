-- Reads what a worker needs of these jobs, in their order. `unfit`: one of them has
-- lookups, or was handed back, which its worker is told.
CREATE OR REPLACE FUNCTION read_claimed(
    ids bigint[], OUT timeouts bigint[], OUT idles bigint[], OUT specs bytea[], OUT unfit boolean
) LANGUAGE plpgsql STABLE AS $$
BEGIN
    SELECT array_agg(j.timeout_ms ORDER BY u.place), array_agg(j.idle_ms ORDER BY u.place),
           array_agg(j.spec ORDER BY u.place),
           bool_or(has_references(j.spec) OR j.handed_back > 0)
    INTO timeouts, idles, specs, unfit
    FROM unnest(ids) WITH ORDINALITY AS u (job, place) JOIN jobs j ON j.id = u.job;
END $$;
