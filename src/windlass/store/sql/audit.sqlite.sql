-- The audit log: the statements that only SQLite runs.

-- name: insert_audit
-- The columns of AuditRow.
INSERT INTO audit (
    id, at, calls, status, token, actor, role, address, action, resource, namespace, code, request,
    about
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);
