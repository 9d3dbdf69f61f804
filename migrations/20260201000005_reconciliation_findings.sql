-- What a reconciliation found about a voucher: each term of the balance, signed, so that a broken
-- one shows as what it is. place is the order in which they were found.
CREATE TABLE IF NOT EXISTS reconciliation_findings (
    reconciliation_id BIGINT UNSIGNED NOT NULL,
    place INT UNSIGNED NOT NULL,
    voucher_id BIGINT UNSIGNED NOT NULL,
    total_units BIGINT NOT NULL,
    free_units BIGINT NOT NULL,
    in_flight_units BIGINT NOT NULL,
    parked_units BIGINT NOT NULL,
    awaiting_payment_units BIGINT NOT NULL,
    paid_units BIGINT NOT NULL,
    holds TINYINT UNSIGNED NOT NULL,
    free_drift BIGINT NOT NULL,
    PRIMARY KEY (reconciliation_id, place),
    CONSTRAINT reconciliation_findings_of_one FOREIGN KEY (reconciliation_id)
        REFERENCES reconciliations (id) ON DELETE CASCADE,
    CONSTRAINT reconciliation_findings_hold_or_not CHECK (holds IN (0, 1))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
