-- Transactions, the clock, the schema and sessions.

-- name: begin
-- The write lock is taken at once: a later upgrade could fail in the middle of the work.
BEGIN IMMEDIATE;

-- name: begin_read
-- The snapshot begins with the first read.
BEGIN;

-- name: commit
-- With synchronous=FULL this returns when the WAL is on the disk.
COMMIT;

-- name: roll_back
-- Nothing of the transaction stays.
ROLLBACK;

-- name: quick_check
-- One finding is enough to refuse the file; without one it answers "ok".
PRAGMA quick_check(1);

-- name: integrity_check
-- Also finds indexes that do not match their tables; takes several times as long.
PRAGMA integrity_check(1);

-- name: has_meta
-- Whether a switch among the settings is on.
SELECT EXISTS (SELECT 1 FROM meta WHERE name = ? AND value > 0);

-- name: any_table
-- A file without our version number must be empty, or it is somebody else's.
SELECT name FROM sqlite_master LIMIT 1;

-- name: data_version
-- Another number than the last time if another connection has committed meanwhile.
PRAGMA data_version;

-- name: sequences
-- The last number each sequence has given: read when the store opens, and again when
-- another process has written.
SELECT name, value FROM sequences;

-- name: save_sequence
-- Written once a transaction, so that a number is never given again after a restart.
INSERT INTO sequences (name, value) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: newest_event
-- The store's time goes on from here; its number tells an older copy from the file.
SELECT at, seq FROM events ORDER BY seq DESC LIMIT 1;
