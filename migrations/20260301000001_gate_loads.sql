-- How often a sale was loaded into the gate, the first time included, and how many of these loads a
-- report of a reconciliation has told of; the first one is nothing to tell of. Apart from vouchers,
-- so that nobody who loads a sale meets a lock of those who write its orders.
CREATE TABLE IF NOT EXISTS gate_loads (
    voucher_id BIGINT UNSIGNED NOT NULL,
    loads INT UNSIGNED NOT NULL,
    told INT UNSIGNED NOT NULL,
    PRIMARY KEY (voucher_id),
    CONSTRAINT gate_loads_told_were_made CHECK (told BETWEEN 1 AND loads)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
