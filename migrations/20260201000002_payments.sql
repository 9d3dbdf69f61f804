-- Payments that the provider has told of, once per its id, with what became of them: a repeated
-- notification gets the same answer. The order need not exist: money comes for what nobody ordered.
CREATE TABLE IF NOT EXISTS payments (
    payment_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    order_id BIGINT UNSIGNED NOT NULL,
    amount_minor BIGINT UNSIGNED NOT NULL,
    currency CHAR(3) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    outcome ENUM (
        'paid', 'refunded_too_late', 'refunded_second', 'refunded_wrong_amount',
        'refunded_unknown_order'
    ) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    created_at DATETIME(3) NOT NULL,
    PRIMARY KEY (payment_id),
    KEY payments_by_order (order_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
