-- Tokens and enrolment codes: the statements that only SQLite runs.

-- name: touch_tokens
-- Another server may know a later use.
UPDATE tokens SET last_used_at = ?2 WHERE id = ?1 AND last_used_at < ?2;
