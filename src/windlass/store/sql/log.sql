-- The event log and the counters beside it.

-- name: newest_event_seq
-- Where to begin to follow what comes.
SELECT coalesce(max(seq), 0) FROM events;

-- name: event_time
-- The next event's, where retention has removed this one.
SELECT at FROM events WHERE seq >= $1 ORDER BY seq LIMIT 1;
