-- Money that comes for an order which still waits for units.
ALTER TABLE payments
    MODIFY COLUMN outcome ENUM (
        'paid', 'refunded_too_late', 'refunded_second', 'refunded_wrong_amount',
        'refunded_unknown_order', 'refunded_too_early'
    ) CHARACTER SET ascii COLLATE ascii_bin NOT NULL;
