-- Every database of the server, with whether this login may enter it. The first four are the server's own; a
-- snapshot is a second view of another database, and left out like them unless it is asked for.
SELECT
    d.name,
    CONVERT(bit, CASE
        WHEN d.database_id <= 4 OR d.is_distributor = 1 OR d.source_database_id IS NOT NULL THEN 1 ELSE 0
    END) AS is_system,
    CONVERT(bit, CASE WHEN d.state = 0 AND HAS_DBACCESS(d.name) = 1 THEN 1 ELSE 0 END) AS is_open
FROM sys.databases AS d
ORDER BY d.name;
