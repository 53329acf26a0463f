-- Every database of the server, and whether we may connect to it.
SELECT datname::text,
       datistemplate OR datname IN ('rdsadmin', 'cloudsqladmin', 'azure_maintenance', 'azure_sys'),
       datallowconn AND has_database_privilege(oid, 'CONNECT')
FROM pg_catalog.pg_database
ORDER BY datname
