-- An order from the moment the ledger has it. joined_seq and settled_seq are the numbers of the
-- decisions that put it on the waitlist and that gave it units or ended its wait: they tell a
-- redelivered decision from another one with the same number. ticket is 0 for an order that never
-- waited.
--
-- The key that serves the foreign key must not have a column that may be NULL: MySQL 9.7 passes over
-- the check for rows where it is. Hence the order of orders_once_per_key, and no NULL in ticket.
CREATE TABLE IF NOT EXISTS orders (
    id BIGINT UNSIGNED NOT NULL,
    voucher_id BIGINT UNSIGNED NOT NULL,
    user_id BIGINT UNSIGNED NOT NULL,
    quantity INT UNSIGNED NOT NULL,
    amount_minor BIGINT UNSIGNED NOT NULL,
    currency CHAR(3) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    status ENUM (
        'waiting', 'pending_payment', 'paid', 'cancelled', 'expired', 'refunded', 'rejected',
        'withdrawn', 'closed_out'
    ) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    reason ENUM ('no_stock', 'limit_reached', 'lost', 'not_enough_units', 'discarded')
        CHARACTER SET ascii COLLATE ascii_bin NULL,
    ticket BIGINT UNSIGNED NOT NULL DEFAULT 0,
    idempotency_key VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
    payment_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
    joined_seq BIGINT UNSIGNED NULL,
    settled_seq BIGINT UNSIGNED NULL,
    created_at DATETIME(3) NOT NULL,
    expires_at DATETIME(3) NULL,
    updated_at DATETIME(3) NOT NULL,
    PRIMARY KEY (id),
    UNIQUE KEY orders_once_per_key (user_id, voucher_id, idempotency_key),
    KEY orders_by_buyer (user_id, id),
    KEY orders_by_deadline (status, expires_at),
    KEY orders_by_stage (voucher_id, status, ticket, quantity),
    CONSTRAINT orders_of_voucher FOREIGN KEY (voucher_id) REFERENCES vouchers (id),
    CONSTRAINT orders_have_units CHECK (quantity > 0),
    CONSTRAINT orders_wait_in_turn CHECK (status <> 'waiting' OR ticket > 0),
    CONSTRAINT orders_due_have_deadline CHECK (status <> 'pending_payment' OR expires_at IS NOT NULL),
    CONSTRAINT orders_paid_by_payment
        CHECK (status NOT IN ('paid', 'refunded') OR payment_id IS NOT NULL),
    CONSTRAINT orders_rejected_say_why CHECK (status <> 'rejected' OR reason IS NOT NULL)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
