-- Entries and decisions that could not be applied and wait for an administrator. units is what was
-- taken out of the stock for one; payload is JSON with a version of its own. seq is 0 for an entry
-- that could not be read: decisions are numbered from 1. The voucher need not exist.
CREATE TABLE IF NOT EXISTS parked_messages (
    id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
    partition_id SMALLINT UNSIGNED NOT NULL,
    seq BIGINT UNSIGNED NOT NULL,
    epoch BIGINT UNSIGNED NOT NULL,
    entry_ms BIGINT UNSIGNED NOT NULL,
    entry_no BIGINT UNSIGNED NOT NULL,
    voucher_id BIGINT UNSIGNED NULL,
    order_id BIGINT UNSIGNED NULL,
    units INT UNSIGNED NOT NULL,
    payload TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    reason ENUM ('unreadable', 'unknown_voucher', 'bad_values')
        CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    state ENUM ('parked', 'replayed', 'discarded') CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    created_at DATETIME(3) NOT NULL,
    updated_at DATETIME(3) NOT NULL,
    PRIMARY KEY (id),
    UNIQUE KEY parked_messages_once (partition_id, seq, epoch, entry_ms, entry_no),
    KEY parked_messages_by_voucher (voucher_id, state),
    KEY parked_messages_by_order (order_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
