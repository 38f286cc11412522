-- Returns the time of the one clock that all servers on this database share, in milliseconds
-- since 1970 (UTC). Tests replace it with a function that reads `injected_clock`.
CREATE OR REPLACE FUNCTION windlass_now() RETURNS bigint LANGUAGE sql VOLATILE
    AS $$SELECT trunc(extract(epoch FROM clock_timestamp()) * 1000)::bigint$$;
