-- The connection that wrote an event: it tells the events of one statement from those that others
-- wrote between them, where numbers are drawn by several statements at once. What is written with it
-- is `published` from the start; what waits to be told is in event_batches. An event without it is of
-- the version before.
ALTER TABLE event_outbox ADD COLUMN written_by BIGINT UNSIGNED NULL;
