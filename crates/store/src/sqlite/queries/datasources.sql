-- Data sources that someone manages, and the book's settings.

-- name: is_managed
SELECT EXISTS (SELECT 1 FROM datasources WHERE name = ?1 AND managed);
