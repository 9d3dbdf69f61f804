-- Whether the ledger agrees with itself, and the gate's terms with the ledger's.
ALTER TABLE reconciliation_findings
    ADD COLUMN stock_drift BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN terms_differ TINYINT UNSIGNED NOT NULL DEFAULT 0;
