-- What an administrator set. Read by every order and seldom written: the counters that every
-- transaction of a sale writes are a row of their own (voucher_stock), so that the shared lock which
-- a foreign key takes here never meets the exclusive lock on the counters.
CREATE TABLE IF NOT EXISTS vouchers (
    id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
    title TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci NOT NULL,
    description TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci NULL,
    face_value_minor BIGINT UNSIGNED NOT NULL,
    price_minor BIGINT UNSIGNED NOT NULL,
    currency CHAR(3) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    per_buyer_limit INT NOT NULL,
    opens_at DATETIME(3) NOT NULL,
    closes_at DATETIME(3) NOT NULL,
    payment_window_s INT UNSIGNED NOT NULL,
    waitlist_capacity INT UNSIGNED NOT NULL,
    status ENUM ('draft', 'published', 'paused', 'closed')
        CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    created_at DATETIME(3) NOT NULL,
    updated_at DATETIME(3) NOT NULL,
    PRIMARY KEY (id),
    KEY vouchers_by_status (status, closes_at),
    CONSTRAINT vouchers_limit_is_positive CHECK (per_buyer_limit > 0),
    CONSTRAINT vouchers_window_is_positive CHECK (payment_window_s > 0)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
