-- The outbox of domain events: written in the transaction that made them true, delivered in order at
-- least once, pruned when every consumer has them.
--
-- Transactions commit in another order than they draw numbers in, so an event's number says nothing about
-- what a consumer has seen. Its position does: it is given to events that are visible, by one reader at a
-- time, and never given again.

CREATE TABLE events (
    number     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    position   bigint,
    job_id     bigint NOT NULL,
    kind       text   NOT NULL,
    payload    text   NOT NULL,
    created_at bigint NOT NULL
);

CREATE SEQUENCE event_positions;
CREATE INDEX events_by_position ON events (position) WHERE position IS NOT NULL;
CREATE INDEX events_without_position ON events (number) WHERE position IS NULL;

CREATE TABLE event_consumers (
    name     text   COLLATE "C" PRIMARY KEY,
    position bigint NOT NULL
);
