-- The audit log: the statements that only PostgreSQL runs.

-- name: lock_audit
-- Keeps other writers out until the end of the transaction; readers do not wait.
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
