-- Orders about which gate and ledger differed. The voucher is the finding's.
CREATE TABLE IF NOT EXISTS reconciliation_differences (
    reconciliation_id BIGINT UNSIGNED NOT NULL,
    finding_place INT UNSIGNED NOT NULL,
    place INT UNSIGNED NOT NULL,
    order_id BIGINT UNSIGNED NOT NULL,
    user_id BIGINT UNSIGNED NOT NULL,
    quantity INT UNSIGNED NOT NULL,
    idempotency_key VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
    kind ENUM ('not_delivered', 'message_gone', 'holder_gone', 'not_released')
        CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    repaired TINYINT UNSIGNED NOT NULL,
    PRIMARY KEY (reconciliation_id, finding_place, place),
    CONSTRAINT reconciliation_differences_of_finding FOREIGN KEY (reconciliation_id, finding_place)
        REFERENCES reconciliation_findings (reconciliation_id, place) ON DELETE CASCADE,
    CONSTRAINT reconciliation_differences_repaired_or_not CHECK (repaired IN (0, 1))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
