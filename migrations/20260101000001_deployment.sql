-- One row: what a deployment was created with.
CREATE TABLE IF NOT EXISTS deployment (
    id TINYINT UNSIGNED NOT NULL,
    partitions SMALLINT UNSIGNED NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT deployment_is_one CHECK (id = 1),
    CONSTRAINT deployment_has_partitions CHECK (partitions > 0)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
