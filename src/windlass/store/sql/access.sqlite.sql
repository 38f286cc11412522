-- Tokens, enrolment codes and the audit log: the statements that only SQLite runs.

-- name: touch_tokens
-- Another server may know a later use.
UPDATE tokens SET last_used_at = ?2 WHERE id = ?1 AND last_used_at < ?2;

-- name: insert_audit
-- The columns of AuditRow.
INSERT INTO audit (
    id, at, calls, status, token, actor, role, address, action, resource, namespace, code, request,
    about
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);
