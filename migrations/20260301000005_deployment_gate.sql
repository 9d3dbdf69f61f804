-- Which gate the deployment has, by the name that it carries itself, and when a process last found
-- both to agree: another one is taken only once nobody has for a while.
ALTER TABLE deployment
    ADD COLUMN gate CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NULL,
    ADD COLUMN gate_seen_at DATETIME(3) NULL;
