-- When a closed voucher left the gate for good.
ALTER TABLE vouchers
    ADD COLUMN retired_at DATETIME(3) NULL,
    ADD CONSTRAINT vouchers_retired_are_closed CHECK (retired_at IS NULL OR status = 'closed');
