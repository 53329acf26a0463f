-- By bytes, because two tables may differ in case alone. Only names: for anything else each table would be opened.
SELECT table_name
FROM information_schema.tables
WHERE table_schema = :schema AND CAST(table_name AS BINARY) > CAST(:after AS BINARY)
ORDER BY CAST(table_name AS BINARY)
LIMIT :max
