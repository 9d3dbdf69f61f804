-- Money that goes back, once per payment. sent says whether the provider has been told. The order
-- need not exist, and an order that an administrator refunds may have been paid without a
-- notification: no foreign keys.
CREATE TABLE IF NOT EXISTS refunds (
    id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
    payment_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    order_id BIGINT UNSIGNED NOT NULL,
    amount_minor BIGINT UNSIGNED NOT NULL,
    currency CHAR(3) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    reason ENUM ('too_late', 'second_payment', 'wrong_amount', 'unknown_order', 'requested')
        CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    sent TINYINT UNSIGNED NOT NULL DEFAULT 0,
    created_at DATETIME(3) NOT NULL,
    updated_at DATETIME(3) NOT NULL,
    PRIMARY KEY (id),
    UNIQUE KEY refunds_once_per_payment (payment_id),
    KEY refunds_by_state (sent, id),
    KEY refunds_by_order (order_id),
    CONSTRAINT refunds_sent_or_not CHECK (sent IN (0, 1))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
