-- Where objects with findings came from.

-- name: give_up_untraced
DELETE FROM untraced_objects WHERE session_id = ?1;
