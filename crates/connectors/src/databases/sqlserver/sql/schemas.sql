-- Every schema of the current database.
SELECT s.name
FROM sys.schemas AS s
ORDER BY s.name;
