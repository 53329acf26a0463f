-- Columns of the tables and views of a schema from one name to another, by table and in their own order. A type of a
-- user's own is given by the type it stands for; one of the server's runtime stands for none, and is given by its
-- name, in brackets if it is not the server's own. Text in another code page than the database's is said to be.
SELECT
    o.name AS table_name,
    c.name,
    CASE
        WHEN base.name IS NULL AND t.is_user_defined = 1 THEN QUOTENAME(t.name)
        ELSE COALESCE(base.name, t.name)
    END AS type_name,
    CONVERT(int, c.max_length) AS max_length,
    CONVERT(int, c.[precision]) AS number_precision,
    CONVERT(int, c.scale) AS number_scale,
    CONVERT(bit, CASE WHEN c.encryption_type IS NULL THEN 0 ELSE 1 END) AS is_encrypted,
    CONVERT(bit, CASE
        WHEN HAS_PERMS_BY_NAME(QUOTENAME(@P1) + N'.' + QUOTENAME(o.name), N'OBJECT', N'SELECT', c.name, N'COLUMN') = 1
        THEN 1 ELSE 0
    END) AS is_readable,
    CONVERT(int, COALESCE(k.key_ordinal, 0)) AS key_ordinal,
    CONVERT(nvarchar(4000), e.value) AS comment,
    CONVERT(bit, CASE
        WHEN base.name IN (N'char', N'varchar')
            AND CONVERT(int, COLLATIONPROPERTY(c.collation_name, 'CodePage')) <> CONVERT(int, COLLATIONPROPERTY(
                CONVERT(nvarchar(128), DATABASEPROPERTYEX(DB_NAME(), 'Collation')), 'CodePage'))
        THEN 1 ELSE 0
    END) AS is_foreign_text
FROM sys.objects AS o
JOIN sys.columns AS c ON c.object_id = o.object_id
JOIN sys.types AS t ON t.user_type_id = c.user_type_id
LEFT JOIN sys.types AS base ON base.user_type_id = c.system_type_id
LEFT JOIN sys.indexes AS i ON i.object_id = o.object_id AND i.is_primary_key = 1
LEFT JOIN sys.index_columns AS k
    ON k.object_id = i.object_id AND k.index_id = i.index_id AND k.column_id = c.column_id
LEFT JOIN sys.extended_properties AS e
    ON e.class = 1 AND e.major_id = c.object_id AND e.minor_id = c.column_id AND e.name = N'MS_Description'
WHERE o.schema_id = SCHEMA_ID(@P1)
    AND o.type IN ('U', 'V')
    AND o.is_ms_shipped = 0
    AND o.name >= @P2
    AND o.name <= @P3
ORDER BY o.name, c.column_id;
