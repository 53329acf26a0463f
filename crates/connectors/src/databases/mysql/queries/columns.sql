SELECT table_name, ordinal_position, column_name, column_type, column_comment, privileges
FROM information_schema.columns
WHERE table_schema = :schema AND table_name = :table AND CAST(table_name AS BINARY) = CAST(:table AS BINARY)
