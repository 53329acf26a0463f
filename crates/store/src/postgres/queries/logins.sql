-- Logins of workers and orchestrators that are bound to node groups.

-- name: grant_login
SELECT grant_login($1, $2, $3);

-- name: revoke_login
SELECT revoke_login($1, $2);

-- A login that is an operator, or owns the tables, is held to nothing, whatever it is bound to.
-- name: logins
SELECT l.login::text, l.node_group,
       EXISTS (
           SELECT 1 FROM pg_auth_members m
           JOIN pg_roles r ON r.oid = m.member
           JOIN pg_roles b ON b.oid = m.roleid
           WHERE r.rolname = l.login AND b.rolname = 'domesday_worker') OR l.login = 'domesday_worker',
       EXISTS (
           SELECT 1 FROM pg_auth_members m
           JOIN pg_roles r ON r.oid = m.member
           JOIN pg_roles b ON b.oid = m.roleid
           WHERE r.rolname = l.login AND b.rolname = 'domesday_orchestrator') OR l.login = 'domesday_orchestrator',
       (SELECT c.relrowsecurity FROM pg_class c WHERE c.oid = 'tasks'::regclass)
           AND NOT coalesce((SELECT has_table_privilege(r.rolname, 'jobs', 'DELETE') FROM pg_roles r WHERE r.rolname = l.login), false)
FROM node_group_logins l
ORDER BY l.login, l.node_group COLLATE "C";
