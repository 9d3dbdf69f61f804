-- Every process asks every second when the last ones ran.
CREATE INDEX reconciliations_by_kind ON reconciliations (is_dry_run, is_full, id);
