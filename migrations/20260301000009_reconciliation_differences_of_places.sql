-- Places on the waitlist are compared, too.
ALTER TABLE reconciliation_differences
    MODIFY COLUMN kind ENUM (
        'not_delivered', 'message_gone', 'holder_gone', 'not_released', 'waiter_gone',
        'waiter_unknown', 'place_differs'
    ) CHARACTER SET ascii COLLATE ascii_bin NOT NULL;
