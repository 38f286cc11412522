-- The one clock of all servers on this database, in milliseconds since 1970 (UTC).
CREATE FUNCTION windlass_now() RETURNS bigint LANGUAGE sql VOLATILE
    AS $$SELECT trunc(extract(epoch FROM clock_timestamp()) * 1000)::bigint$$;

-- Tests put a time here and `windlass_now()` in another form, which reads it.
CREATE TABLE injected_clock (
    at bigint NOT NULL
);
