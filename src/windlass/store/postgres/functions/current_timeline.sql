-- Returns the timeline that this cluster writes: a standby that takes over begins a new one, and so
-- does a backup that is restored up to a point in time.
CREATE OR REPLACE FUNCTION current_timeline() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::bigint
$$;
