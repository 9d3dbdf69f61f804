-- What a relay of events has claimed: the numbers from first_id to last_id, one row per relay. An
-- event that is committed later with a number in between is the relay's, too. In place of a mark on
-- each event, which cost as much as writing the event; claimed_by and claimed_until in event_outbox
-- are still heeded, for relays of the version before, and written by nobody else.
CREATE TABLE IF NOT EXISTS event_claims (
    owner VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    first_id BIGINT UNSIGNED NOT NULL,
    last_id BIGINT UNSIGNED NOT NULL,
    claimed_until DATETIME(3) NOT NULL,
    PRIMARY KEY (owner),
    CONSTRAINT event_claims_are_ranges CHECK (first_id <= last_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
