-- Data sources that someone manages, and the book's settings.

-- name: lock_datasource
SELECT managed FROM datasources WHERE name = $1 FOR UPDATE;

-- name: lock_setting
SELECT value FROM book_settings WHERE name = $1 FOR UPDATE;
