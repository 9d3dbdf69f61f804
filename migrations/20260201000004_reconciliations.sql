-- Comparisons of gate and ledger that ran.
CREATE TABLE IF NOT EXISTS reconciliations (
    id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
    started_at DATETIME(3) NOT NULL,
    finished_at DATETIME(3) NOT NULL,
    is_full TINYINT UNSIGNED NOT NULL,
    is_dry_run TINYINT UNSIGNED NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT reconciliations_full_or_not CHECK (is_full IN (0, 1)),
    CONSTRAINT reconciliations_dry_or_not CHECK (is_dry_run IN (0, 1))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
