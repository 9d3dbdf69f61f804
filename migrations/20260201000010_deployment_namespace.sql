-- What the gate's keys begin with. Two gates for one ledger would each sell the whole stock.
ALTER TABLE deployment
    ADD COLUMN namespace VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL;
