-- Tables and views of a schema after a name, or the one of a name, in the order of names. Rows and
-- pages are the server's own counts, from views that need no right to see the server's state. A view with a clustered
-- index is stored, as a table is.
SELECT TOP (@P3)
    o.name,
    CONVERT(varchar(1), CASE
        WHEN o.type = 'U' THEN 'T'
        WHEN EXISTS (SELECT 1 FROM sys.indexes AS i WHERE i.object_id = o.object_id AND i.index_id = 1) THEN 'M'
        ELSE 'V'
    END) AS kind,
    (
        SELECT SUM(p.rows) FROM sys.partitions AS p
        WHERE p.object_id = o.object_id AND p.index_id IN (0, 1)
    ) AS row_count,
    (
        SELECT SUM(a.used_pages) FROM sys.partitions AS p
        JOIN sys.allocation_units AS a ON a.container_id IN (p.hobt_id, p.partition_id)
        WHERE p.object_id = o.object_id AND p.index_id IN (0, 1)
    ) AS pages,
    CONVERT(nvarchar(4000), e.value) AS comment
FROM sys.objects AS o
LEFT JOIN sys.extended_properties AS e
    ON e.class = 1 AND e.major_id = o.object_id AND e.minor_id = 0 AND e.name = N'MS_Description'
WHERE o.schema_id = SCHEMA_ID(@P1)
    AND o.type IN ('U', 'V')
    AND o.is_ms_shipped = 0
    AND (@P2 IS NULL OR o.name > @P2)
    AND (@P4 IS NULL OR o.name = @P4)
ORDER BY o.name;
