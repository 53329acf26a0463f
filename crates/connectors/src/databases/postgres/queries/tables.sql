-- $1 schema, $2 name after which to begin, $3 the only name, $4 how many at most, $5 whether to ask for sizes,
-- which waits for locks.
-- A partitioned table stands for its partitions; what is inherited is read from each table of its own.
SELECT c.relname::text,
       c.relkind::text,
       obj_description(c.oid, 'pg_class'),
       coalesce(measured.bytes, (c.relpages::int8 * 8192)),
       CASE
           WHEN c.relkind NOT IN ('r', 'm', 'p') THEN NULL
           WHEN $5 THEN coalesce(measured.tuples, 0)
           WHEN c.reltuples >= 0 AND c.relpages > 0 THEN c.reltuples::float8
       END,
       has_table_privilege(c.oid, 'SELECT'),
       coalesce((SELECT json_agg(json_build_array(
                            a.attname,
                            format_type(a.atttypid, a.atttypmod),
                            col_description(c.oid, a.attnum),
                            has_column_privilege(c.oid, a.attnum, 'SELECT'))
                        ORDER BY a.attnum)
                 FROM pg_catalog.pg_attribute AS a
                 WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)::text, '[]'),
       coalesce((SELECT json_agg(a.attname ORDER BY part.place)
                 FROM pg_catalog.pg_index AS i
                 CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS part (attnum, place)
                 JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = part.attnum
                 WHERE i.indrelid = c.oid AND i.indisprimary AND i.indisvalid
                     AND part.place <= i.indnkeyatts)::text, '[]')
FROM pg_catalog.pg_namespace AS n
JOIN pg_catalog.pg_class AS c ON c.relnamespace = n.oid
LEFT JOIN LATERAL (
    -- As the planner does: the density of the last analysis times the pages of now; without an analysis what
    -- fits a page by the columns' widths.
    SELECT sum(leaf.bytes)::int8 AS bytes,
           sum(CASE
                   WHEN leaf.reltuples > 0 AND leaf.relpages > 0
                       THEN leaf.reltuples::float8 / leaf.relpages * leaf.pages
                   ELSE leaf.pages * 8192 / width.bytes
               END) AS tuples
    FROM (
        SELECT l.reltuples, l.relpages, pg_relation_size(l.oid)::float8 / 8192 AS pages, pg_table_size(l.oid) AS bytes
        FROM (
            SELECT c.oid WHERE c.relkind <> 'p'
            UNION ALL
            SELECT relid::oid FROM pg_partition_tree(c.oid) WHERE isleaf AND c.relkind = 'p'
        ) AS leaves
        JOIN pg_catalog.pg_class AS l ON l.oid = leaves.oid
    ) AS leaf
    CROSS JOIN (
        SELECT 28 + coalesce(sum(CASE WHEN a.attlen > 0 THEN a.attlen ELSE 32 END), 0)::float8 AS bytes
        FROM pg_catalog.pg_attribute AS a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    ) AS width
) AS measured ON $5 AND c.relkind IN ('r', 'm', 'p')
WHERE n.nspname = $1::text::name
    AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
    AND NOT c.relispartition
    AND ($2::text IS NULL OR c.relname > $2::text::name)
    AND ($3::text IS NULL OR c.relname = $3::text::name)
ORDER BY c.relname
LIMIT $4
