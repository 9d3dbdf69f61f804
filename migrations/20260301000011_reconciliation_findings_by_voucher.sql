-- What the last report told of a voucher.
CREATE INDEX reconciliation_findings_by_voucher
    ON reconciliation_findings (voucher_id, reconciliation_id);
