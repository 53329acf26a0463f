SELECT table_name, seq_in_index, column_name, sub_part
FROM information_schema.statistics
WHERE table_schema = :schema AND table_name = :table AND CAST(table_name AS BINARY) = CAST(:table AS BINARY)
    AND index_name = 'PRIMARY'
