-- A buyer's live units of one voucher. The check is the last line of defence against repeat
-- purchases: it holds even if the gate is empty or wrong. Signed for the same reason as the stock.
CREATE TABLE IF NOT EXISTS holdings (
    voucher_id BIGINT UNSIGNED NOT NULL,
    user_id BIGINT UNSIGNED NOT NULL,
    units INT NOT NULL,
    unit_limit INT NOT NULL,
    PRIMARY KEY (voucher_id, user_id),
    CONSTRAINT holdings_within_limit CHECK (units BETWEEN 0 AND unit_limit)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
