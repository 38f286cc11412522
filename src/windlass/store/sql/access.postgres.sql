-- Tokens, enrolment codes and the audit log: the statements that only PostgreSQL runs.

-- name: touch_tokens
-- One statement for all tokens used recently; other servers may know a later use.
UPDATE tokens SET last_used_at = used.at
FROM unnest($1::text::bigint[], $2::text::bigint[]) AS used (id, at)
WHERE tokens.id = used.id AND tokens.last_used_at < used.at;

-- name: lock_tokens
-- Creating a person's token first looks for its name; two concurrent creations would both find none.
LOCK TABLE tokens IN SHARE ROW EXCLUSIVE MODE;

-- name: lock_audit
-- Blocks other writers until the end of the transaction; readers do not wait.
LOCK TABLE audit IN SHARE ROW EXCLUSIVE MODE;

-- name: insert_audit
-- One statement for many rows; the ids rise in the order of the rows.
INSERT INTO audit (
    at, calls, status, token, actor, role, address, action, resource, namespace, code, request, about
)
SELECT at, calls, status, token, actor, role, address, action, resource, namespace, code, request, about
FROM unnest(
    $1::text::bigint[], $2::text::bigint[], $3::text::integer[], $4::text::bigint[], $5::text[], $6::text[], $7::text[],
    $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[]
) WITH ORDINALITY AS rows (
    at, calls, status, token, actor, role, address, action, resource, namespace, code, request, about,
    place
)
ORDER BY place;
