-- A voucher's orders in a stage by rising id: the pages of a reconciliation.
CREATE INDEX orders_by_voucher ON orders (voucher_id, status, id);
