-- What the gate took for a message whose voucher was not in the ledger: no stock was there to take it
-- out of. It is counted off the stock once the voucher is there again.
ALTER TABLE parked_messages ADD COLUMN unheld_units INT UNSIGNED NOT NULL DEFAULT 0;
