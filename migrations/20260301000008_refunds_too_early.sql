-- Money that comes for an order which still waits for units.
ALTER TABLE refunds
    MODIFY COLUMN reason ENUM (
        'too_late', 'second_payment', 'wrong_amount', 'unknown_order', 'requested', 'too_early'
    ) CHARACTER SET ascii COLLATE ascii_bin NOT NULL;
