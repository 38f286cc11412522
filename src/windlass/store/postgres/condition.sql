-- What `windlass doctor` asks a database. None of it changes anything.

-- name: condition
-- The settings that decide whether commits last, and how many may connect.
SELECT current_setting('server_version'), pg_is_in_recovery(),
       current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on',
       current_setting('synchronous_commit') <> 'off', current_setting('autovacuum') = 'on',
       current_setting('synchronous_standby_names') <> '',
       current_setting('max_connections')::integer
           - current_setting('superuser_reserved_connections')::integer
           - coalesce(current_setting('reserved_connections', true), '0')::integer,
       pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')

-- name: clients
-- How many sessions there are, how many of them are ours, and how many of ours listen, which is one
-- for each server.
SELECT count(*), count(*) FILTER (WHERE application_name = 'windlass'),
       count(*) FILTER (WHERE application_name = 'windlass' AND query LIKE 'LISTEN %')
FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()

-- name: oldest_transaction
-- What keeps vacuum from removing what was deleted since; another database's counts, too.
SELECT pid, coalesce(usename, '?'), coalesce(application_name, ''),
       extract(epoch FROM clock_timestamp() - xact_start)::double precision
FROM pg_stat_activity
WHERE xact_start IS NOT NULL AND backend_type = 'client backend' AND pid <> pg_backend_pid()
ORDER BY xact_start LIMIT 1

-- name: prepared_transactions
-- Those survive restarts and hold their locks until somebody ends them.
SELECT count(*) FROM pg_prepared_xacts

-- name: standbys
-- Who follows, how, and how many bytes it has not replayed.
SELECT coalesce(application_name, '?'), coalesce(sync_state, '?'),
       coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn), 0)::bigint
FROM pg_stat_replication ORDER BY application_name

-- name: dead_rows
-- The table with most dead rows, and when it was last vacuumed.
SELECT relname, n_dead_tup, n_live_tup, greatest(last_vacuum, last_autovacuum) IS NULL
FROM pg_stat_user_tables WHERE schemaname = 'windlass' ORDER BY n_dead_tup DESC LIMIT 1
