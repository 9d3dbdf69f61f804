-- What the ledger changed and the gate has to follow: an outbox. payload is JSON with a version of
-- its own; units_returned is what the balance counts as on its way to the gate. The reference is to
-- voucher_stock because a writer of this table has that row locked anyway.
CREATE TABLE IF NOT EXISTS gate_updates (
    voucher_id BIGINT UNSIGNED NOT NULL,
    version BIGINT UNSIGNED NOT NULL,
    units_returned INT UNSIGNED NOT NULL,
    payload MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    created_at DATETIME(3) NOT NULL,
    PRIMARY KEY (voucher_id, version),
    KEY gate_updates_by_age (voucher_id, created_at),
    CONSTRAINT gate_updates_of_voucher FOREIGN KEY (voucher_id) REFERENCES voucher_stock (voucher_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
