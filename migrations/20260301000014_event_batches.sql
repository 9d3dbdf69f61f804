-- What waits to be told: one row for all events of one statement, from first_id to last_id, those of
-- written_by alone. Once they are told, the row goes. In place of a mark on each event, which cost as
-- much as writing it. claimed_by and claimed_until are a relay's lease; event_claims is left to relays
-- of the version before.
CREATE TABLE IF NOT EXISTS event_batches (
    first_id BIGINT UNSIGNED NOT NULL,
    last_id BIGINT UNSIGNED NOT NULL,
    written_by BIGINT UNSIGNED NOT NULL,
    events INT UNSIGNED NOT NULL,
    claimed_by VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    claimed_until DATETIME(3) NULL,
    PRIMARY KEY (first_id),
    CONSTRAINT event_batches_are_ranges CHECK (first_id <= last_id),
    CONSTRAINT event_batches_have_events CHECK (events > 0 AND events <= last_id - first_id + 1),
    CONSTRAINT event_batches_claims_end CHECK ((claimed_by IS NULL) = (claimed_until IS NULL))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
