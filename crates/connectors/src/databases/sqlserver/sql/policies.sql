-- Whether a security policy filters what is read of a table. Who may not see policies gets no answer.
SELECT TOP (1) CONVERT(int, p.security_predicate_id) AS predicate
FROM sys.security_policies AS s
JOIN sys.security_predicates AS p ON p.object_id = s.object_id
WHERE s.is_enabled = 1
    AND p.predicate_type_desc = N'FILTER'
    AND p.target_object_id = OBJECT_ID(QUOTENAME(@P1) + N'.' + QUOTENAME(@P2));
