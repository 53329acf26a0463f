-- A login is bound to node groups under the name that it connects with. It may be a member of another login's role, and
-- `SET ROLE` to it: that changes nothing of what it sees.

CREATE OR REPLACE FUNCTION caller() RETURNS name LANGUAGE sql STABLE AS $$ SELECT session_user $$;
ALTER TABLE worker_sessions ALTER COLUMN login SET DEFAULT session_user;
ALTER TABLE orchestrators ALTER COLUMN login SET DEFAULT session_user;
