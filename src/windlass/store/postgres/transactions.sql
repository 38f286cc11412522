-- Transactions, the clock, the schema and sessions.
--
-- In all statements of this store, arrays of integers arrive as text (`$1::text::bigint[]`):
-- asyncpg needs ten times as long to write a binary array, and the server reads either in the same
-- time. A column that has the same value in all rows arrives as a scalar beside an empty array;
-- `unnest` fills up with NULL, and `coalesce` puts the scalar there.
--
-- Connections allow neither hash nor merge joins (see connections.py), so rows are visited in the
-- order of the arrays, which ascends by id.

-- name: begin
-- READ COMMITTED: each statement sees what was committed before it began, which the walk
-- through the places relies upon.
BEGIN ISOLATION LEVEL READ COMMITTED

-- name: begin_read
-- One snapshot for all statements of a read.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY

-- name: now
-- The database's clock is the one clock of all servers.
SELECT windlass_now()

-- name: commit
-- The moment everything before it becomes true; what it notes tells so if the answer is lost. Both
-- go as one message, which takes no parameters.
SELECT note_commit(%d, %d, %s); COMMIT

-- name: end_read
-- Nothing was written, or it is written again if this is not answered.
COMMIT

-- name: rollback
-- Nothing of it ever was.
ROLLBACK

-- name: event_writers
-- Who may still fill a gap: the transactions that hold the shared lock of `append_events`.
SELECT virtualtransaction FROM pg_locks
WHERE locktype = 'advisory' AND classid = 1464421956 AND objid = 1 AND objsubid = 2
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())

-- name: notify
-- After COMMIT, as a statement of its own: inside, it would hold a lock that all notifiers
-- share until the commit is on disk.
-- Nothing is sent if the sender is the first who listens ($2) and nobody else does.
SELECT pg_notify('windlass', payload) FROM unnest($1::text[]) AS payload
WHERE NOT ($2 AND pg_try_advisory_xact_lock(1464421956, 8))

-- name: listen_first
-- Who listens has this lock or the next one until its session ends; this one is for one session.
SELECT pg_try_advisory_lock(1464421956, 7)

-- name: listen_too
-- Waits for transactions that have found nobody here, so whatever comes next is told.
SELECT pg_advisory_lock_shared(1464421956, 8)

-- name: inject_clock
-- Tests only: the time that all servers on this database see.
WITH gone AS (DELETE FROM injected_clock) INSERT INTO injected_clock VALUES ($1)

-- name: use_injected_clock
-- Replacing the function instead of asking a flag: the real clock pays nothing for it.
CREATE OR REPLACE FUNCTION windlass_now() RETURNS bigint LANGUAGE sql VOLATILE
AS $$SELECT at FROM injected_clock$$

-- name: create_schema
-- All tables live in a schema of their own, beside the user's.
CREATE SCHEMA IF NOT EXISTS windlass

-- name: create_migrations
-- Which versions of the schema were applied.
CREATE TABLE IF NOT EXISTS migrations (number integer PRIMARY KEY, name text NOT NULL)

-- name: lock_migrations
-- Two upgrades at once: the second waits and finds nothing to do.
SELECT pg_advisory_xact_lock(1464421956, 2)

-- name: has_migrations
-- Whether this database was ever prepared.
SELECT to_regclass('windlass.migrations') IS NOT NULL

-- name: functions_digest
-- Which functions were applied last: their digest is the comment on this table.
SELECT obj_description('windlass.migrations'::regclass, 'pg_class')

-- name: note_functions
-- In the same transaction as the functions themselves.
COMMENT ON TABLE migrations IS 'DIGEST'

-- name: schema_version
-- The newest version that was applied.
SELECT coalesce(max(number), 0) FROM migrations

-- name: note_migration
-- In the same transaction as the migration itself.
INSERT INTO migrations (number, name) VALUES ($1, $2)

-- name: submit_plain
-- One round trip, see functions/; the last event shows later whether the commit is still there.
SELECT moment, ids, alone, CASE WHEN ids IS NOT NULL THEN currval('event_numbers') END
FROM submit_plain($1, $2, $3, $4::text::integer[], $5::text::integer[], $6::text::bigint[],
                  $7::text::integer[], $8::text::bigint[], $9::text::bigint[], $10, $11, $12, $13,
                  $14, $15, $16, $17, $18::text::text[], $19::text::bigint[], $20::text::text[],
                  $21::text::text[], $22::text::text[], $23::text::integer[],
                  $24::text::integer[], $25, $26, $27, $28::text::integer[], $29::text::bigint[],
                  $30::text::integer[], $31::text::integer[])

-- name: sync_plain
-- One round trip, see functions/.
SELECT moment, asked, looked, given_jobs, given_attempts, given_leases, timeouts, idles, specs,
       cursor_ranks, cursor_jobs, left_shapes, left_ranks, left_jobs, held,
       CASE WHEN moment IS NOT NULL AND (cardinality(given_jobs) > 0 OR $23 <> '{}')
            THEN currval('event_numbers') END
FROM sync_plain($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
                $17::text::bigint[], $18::text::integer[], $19::text::bigint[],
                $20::text::bigint[], $21::text::integer[], $22::text::text[], $23::text::bigint[],
                $24::text::integer[], $25::text::integer[], $26, $27, $28, $29)

-- name: sync_gated
-- One round trip, see functions/.
SELECT moment, asked, looked, given_jobs, given_attempts, given_leases, timeouts, idles, specs,
       cursor_ranks, cursor_jobs, left_shapes, left_ranks, left_jobs, held, given_shapes,
       freed,
       CASE WHEN moment IS NOT NULL AND (cardinality(given_jobs) > 0 OR $25 <> '{}')
            THEN currval('event_numbers') END
FROM sync_gated($1::text::integer[], $2::text::bigint[], $3, $4, $5, $6, $7, $8, $9, $10, $11,
                $12, $13, $14, $15, $16, $17, $18,
                $19::text::bigint[], $20::text::integer[], $21::text::bigint[],
                $22::text::bigint[], $23::text::integer[], $24::text::text[], $25::text::bigint[],
                $26::text::integer[], $27::text::integer[], $28, $29, $30, $31)

-- name: session
-- A process number may be used again; together with its start it is one session's only. The number
-- is random: where the marks of this session begin.
SELECT pid, (extract(epoch FROM backend_start) * 1000000)::bigint,
       hashtextextended(gen_random_uuid()::text, 0) >> 1
FROM pg_stat_activity WHERE pid = pg_backend_pid()

-- name: pooled_session
-- The session that a pooler lends to this transaction, when the transaction began, and which server
-- that is. It also works before the schema is there.
SELECT pid, (extract(epoch FROM backend_start) * 1000000)::bigint,
       (extract(epoch FROM xact_start) * 1000000)::bigint, pg_postmaster_start_time()
FROM pg_stat_get_activity(pg_backend_pid())

-- name: end_session
-- End a session whose client is gone, and wait until it is: then what it did is certain. A pooler
-- gives the session to others once the transaction, which began at $3, has ended.
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE pid = $1 AND (extract(epoch FROM backend_start) * 1000000)::bigint = $2
  AND ($3 = 0 OR (extract(epoch FROM xact_start) * 1000000)::bigint = $3)

-- name: is_committed
-- Whether a transaction has noted this.
SELECT EXISTS (SELECT FROM commits_even WHERE mark = $1)
    OR EXISTS (SELECT FROM commits_odd WHERE mark = $1)

-- name: commits_forgotten
-- After `is_committed`: what began later than this would have been found.
SELECT coalesce(max(value), -1) FROM meta WHERE name = 'commits_forgotten'

-- name: vouch
-- Its answer comes once everything that was seen is as durable as the database makes commits.
SELECT note_commit(0, windlass_now(), true)

-- name: jobs_of_commit
-- The jobs of a hot submit: the same transaction wrote their first events. They are younger than $2.
SELECT v.at, v.job FROM events e JOIN each_event v ON v.row_seq = e.seq
WHERE e.seq >= first_event_since(
    (SELECT created_at FROM jobs WHERE id > $2 ORDER BY id LIMIT 1) - 60000
) AND e.kind = {event.job} AND e."from" = {state.new} AND e.xmin = (
    SELECT c.xmin FROM commits_even c WHERE c.mark = $1
    UNION ALL SELECT c.xmin FROM commits_odd c WHERE c.mark = $1
) AND v.job > $2
ORDER BY v.job

-- name: newest_event
-- Where the next `polled_arrivals` begins.
SELECT coalesce(max(seq), 0) FROM events

-- name: polled_arrivals
-- What became ready since an event: by shape, the best job and how many.
SELECT r.shape, min(r.rank), (array_agg(r.job ORDER BY r.rank, r.job))[1], count(*)
FROM (SELECT DISTINCT e.job FROM each_event e
      WHERE e.row_seq > $1 AND e.seq > $1 AND e.kind = {event.job} AND e."to" = {state.queued} LIMIT 10000) AS queued
JOIN jobs j ON j.id = queued.job
JOIN ready r ON r.shape = j.shape AND r.rank = j.rank AND r.job = j.id
GROUP BY r.shape

-- name: polled_workers
-- Whose sync has something to answer: workers that changed since an event, or are told to stop jobs.
SELECT worker FROM events
WHERE seq > $1 AND kind = {event.worker} AND worker IS NOT NULL
UNION
SELECT worker FROM leases
WHERE (reason IS NOT NULL OR suspicion IS NOT NULL) AND reason IS NOT NULL

-- name: identity
-- Another number in every cluster, database and table: a dump that was restored has a new one.
SELECT hashtextextended(
    system_identifier || ':' || oid || ':' || 'windlass.meta'::regclass::oid, 0)
FROM pg_control_system(), pg_database WHERE datname = current_database()

-- name: noted_identity
-- The identity when a server last started, or an epoch last began.
SELECT value FROM meta WHERE name = 'identity'

-- name: run
-- Another one once the cluster was started again, or a standby took over.
SELECT current_timeline(), pg_postmaster_start_time()
