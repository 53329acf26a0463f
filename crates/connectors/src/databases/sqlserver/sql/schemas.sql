-- Every schema of the current database. 2, 3 and 4 are guest, INFORMATION_SCHEMA and sys; those from 16384 on
-- belong to the fixed roles.
SELECT
    s.name,
    CONVERT(bit, CASE WHEN s.schema_id IN (2, 3, 4) OR s.schema_id >= 16384 THEN 1 ELSE 0 END) AS is_system
FROM sys.schemas AS s
ORDER BY s.name;
