-- Whether the gate had the sale, and how often it was loaded again since it was told of last.
ALTER TABLE reconciliation_findings
    ADD COLUMN at_gate TINYINT UNSIGNED NOT NULL DEFAULT 1,
    ADD COLUMN reloads INT UNSIGNED NOT NULL DEFAULT 0;
