-- The event log and the counters beside it.

-- name: newest_event_seq
-- Where to start following the log.
SELECT coalesce(max(seq), 0) FROM events;

-- name: event_time
-- The time of the next event if retention has removed this one.
SELECT at FROM events WHERE seq >= $1 ORDER BY seq LIMIT 1;
