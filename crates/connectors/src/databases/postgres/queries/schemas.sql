-- Every schema of the database, and whether we may look into it. Temporary ones are other sessions' own.
SELECT nspname::text,
       left(nspname::text, 3) = 'pg_' OR nspname = 'information_schema',
       has_schema_privilege(oid, 'USAGE')
FROM pg_catalog.pg_namespace
WHERE nspname::text !~ '^pg_(toast_)?temp_'
ORDER BY nspname
