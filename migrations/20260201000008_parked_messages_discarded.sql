-- Why an administrator gave a message up, in his words.
ALTER TABLE parked_messages
    ADD COLUMN discarded_because TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci NULL,
    ADD KEY parked_messages_by_state (state, id),
    ADD CONSTRAINT parked_messages_discarded_say_why
        CHECK ((state = 'discarded') = (discarded_because IS NOT NULL));
