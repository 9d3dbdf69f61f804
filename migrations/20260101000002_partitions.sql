-- How far each partition's admission stream is applied, and who may go on. Every batch of the order
-- writer moves its row first, and only from the position, epoch and fence that it knows.
CREATE TABLE IF NOT EXISTS partitions (
    partition_id SMALLINT UNSIGNED NOT NULL,
    fence BIGINT UNSIGNED NOT NULL,
    epoch BIGINT UNSIGNED NOT NULL,
    applied_seq BIGINT UNSIGNED NOT NULL,
    applied_ms BIGINT UNSIGNED NOT NULL,
    applied_no BIGINT UNSIGNED NOT NULL,
    PRIMARY KEY (partition_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
