-- Tokens and enrolment codes: the statements that only PostgreSQL runs.

-- name: touch_tokens
-- One statement for all tokens that were used lately; other servers may know a later use.
UPDATE tokens SET last_used_at = used.at
FROM unnest($1::text::bigint[], $2::text::bigint[]) AS used (id, at)
WHERE tokens.id = used.id AND tokens.last_used_at < used.at;

-- name: lock_tokens
-- Whoever makes a person's token looks for its name first; two at once would both find none.
LOCK TABLE tokens IN SHARE ROW EXCLUSIVE MODE;
