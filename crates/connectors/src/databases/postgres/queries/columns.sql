-- $1 schema, $2 table: what is needed to read its columns. A domain is what it is made of.
WITH RECURSIVE base AS (
    SELECT a.attnum, a.attname, a.atttypmod, t.oid, t.typtype, t.typbasetype, t.typtypmod, t.typlen, t.typname, t.typnamespace
    FROM pg_catalog.pg_namespace AS n
    JOIN pg_catalog.pg_class AS c ON c.relnamespace = n.oid
    JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid
    JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
    WHERE n.nspname = $1::text::name AND c.relname = $2::text::name AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT b.attnum, b.attname, b.typtypmod, t.oid, t.typtype, t.typbasetype, t.typtypmod, t.typlen, t.typname, t.typnamespace
    FROM base AS b
    JOIN pg_catalog.pg_type AS t ON t.oid = b.typbasetype
    WHERE b.typtype = 'd'
)
SELECT b.attname::text,
       b.oid,
       b.atttypmod,
       b.typlen::int4,
       b.typtype = 'e' OR b.typnamespace = 'pg_catalog'::regnamespace,
       b.typname::text,
       (SELECT quote_ident(ns.nspname) || '.st_astext' FROM pg_catalog.pg_proc AS p
        WHERE p.pronamespace = ns.oid AND p.proname = 'st_astext' LIMIT 1),
       (SELECT c.relkind::text FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = $1::text::name AND c.relname = $2::text::name)
FROM base AS b
JOIN pg_catalog.pg_namespace AS ns ON ns.oid = b.typnamespace
WHERE b.typtype <> 'd'
ORDER BY b.attnum
