-- The counters of a sale. The columns are signed so that one unit too many meets the check and not
-- an arithmetic error. gate_version numbers every change that the gate has to follow.
CREATE TABLE IF NOT EXISTS voucher_stock (
    voucher_id BIGINT UNSIGNED NOT NULL,
    total_units INT NOT NULL,
    stock_units INT NOT NULL,
    gate_version BIGINT UNSIGNED NOT NULL,
    PRIMARY KEY (voucher_id),
    CONSTRAINT voucher_stock_of_voucher FOREIGN KEY (voucher_id) REFERENCES vouchers (id),
    CONSTRAINT voucher_stock_in_range CHECK (stock_units BETWEEN 0 AND total_units)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
