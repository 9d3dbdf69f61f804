-- Changes of stock that administrators asked for, once per key. settled_seq is the number of the
-- decision by which the gate took units out. (The order of the keys: see orders.)
CREATE TABLE IF NOT EXISTS stock_adjustments (
    id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
    voucher_id BIGINT UNSIGNED NOT NULL,
    delta INT NOT NULL,
    reason TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci NOT NULL,
    idempotency_key VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
    state ENUM ('pending', 'applied', 'refused') CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    settled_seq BIGINT UNSIGNED NULL,
    created_at DATETIME(3) NOT NULL,
    updated_at DATETIME(3) NOT NULL,
    PRIMARY KEY (id),
    KEY stock_adjustments_by_voucher (voucher_id),
    UNIQUE KEY stock_adjustments_once_per_key (idempotency_key, voucher_id),
    CONSTRAINT stock_adjustments_of_voucher FOREIGN KEY (voucher_id) REFERENCES vouchers (id),
    CONSTRAINT stock_adjustments_change_something CHECK (delta <> 0)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
