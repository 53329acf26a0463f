-- With one name each, so that the server opens this table alone; once more by bytes, because names are compared
-- without case.
SELECT table_name, table_type, table_rows, data_length, table_comment
FROM information_schema.tables
WHERE table_schema = :schema AND table_name = :table AND CAST(table_name AS BINARY) = CAST(:table AS BINARY)
