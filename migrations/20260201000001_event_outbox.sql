-- What happened, for those who want to be told. Written in the transaction that made it true, after
-- the order's row is locked: an order's events have rising numbers. claimed_by and claimed_until are
-- a relay's lease. Published events are kept for a while for those who reconnect, then pruned.
--
-- No foreign keys: every order inserts a row here, and whoever may do that has the voucher and the
-- order in the same transaction.
CREATE TABLE IF NOT EXISTS event_outbox (
    id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
    kind ENUM (
        'waiting', 'queued', 'pending_payment', 'paid', 'cancelled', 'expired', 'refunded',
        'rejected', 'withdrawn', 'closed_out', 'promoted', 'refund_recorded', 'voucher_published',
        'voucher_paused', 'voucher_resumed', 'voucher_closed', 'voucher_amended', 'stock_adjusted'
    ) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    voucher_id BIGINT UNSIGNED NOT NULL,
    order_id BIGINT UNSIGNED NULL,
    user_id BIGINT UNSIGNED NULL,
    published TINYINT UNSIGNED NOT NULL DEFAULT 0,
    claimed_by VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    claimed_until DATETIME(3) NULL,
    created_at DATETIME(3) NOT NULL,
    PRIMARY KEY (id),
    KEY event_outbox_by_state (published, id),
    KEY event_outbox_by_order (order_id, id),
    CONSTRAINT event_outbox_published_or_not CHECK (published IN (0, 1)),
    CONSTRAINT event_outbox_orders_have_buyers CHECK ((order_id IS NULL) = (user_id IS NULL)),
    CONSTRAINT event_outbox_claims_end CHECK ((claimed_by IS NULL) = (claimed_until IS NULL))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
