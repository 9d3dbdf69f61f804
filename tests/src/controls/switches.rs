//! The guards, each with the change that switches it off.

/// Guards in the scripts of the gate, its loading and its leases.
pub mod gate {
    use super::super::Switch;

    /// A buyer who holds as much as he may is answered with what he has.
    pub static HOLDER_CHECK: &[Switch] = &[
        Switch::script(
            "lib/repeats",
            "if holders.units(buyer) >= sale.limit then",
            "if false then",
        ),
        Switch::script("gate_admit", "if wanted > remaining then", "if false then"),
    ];

    /// A known idempotency key is answered with its first order.
    pub static KEY_CHECK: &[Switch] = &[Switch::script(
        "lib/repeats",
        "if used then",
        "if false then",
    )];

    /// An order id that was decided before is not decided again.
    pub static DECIDED_BEFORE: &[Switch] = &[Switch::script(
        "lib/repeats",
        "if told then",
        "if false then",
    )];

    /// A survivor that is in the index of decided orders is not appended again.
    pub static DECIDED_AT_LOADING: &[Switch] = &[Switch::script(
        "loader_append_again",
        "not partition.stands(order)",
        "true",
    )];

    /// A count of holders that disagrees with their key means that something was lost.
    pub static LOST_HOLDERS: &[Switch] = &[Switch::script(
        "lib/sale",
        "read('HLEN', KEYS[5]) ~= tonumber(got[10])",
        "false",
    )];

    /// Only the loader whose token is alive loads and opens.
    pub static LOADING_TOKEN: &[Switch] = &[
        Switch::script(
            "loader_load",
            "if not loading.mine() then",
            "loading.mine()\nloading.staged = loading.staged or 0\nif false then",
        ),
        Switch::script(
            "loader_open",
            "if not loading.mine() then",
            "loading.mine()\nloading.seq, loading.staged = loading.seq or 0, loading.staged or 0\nif false then",
        ),
    ];

    /// A sale opens only with a snapshot that has everything decided before the load.
    pub static SNAPSHOT_POSITION: &[Switch] = &[Switch::script(
        "loader_open",
        "if tonumber(ARGV[4]) < loading.seq then",
        "if false then",
    )];

    /// Units come back only from a buyer who is known to hold them.
    pub static RELEASE_FROM_HOLDER: &[Switch] = &[Switch::script(
        "gate_follow",
        "if holders.remove(words[3], words[2]) then",
        "holders.remove(words[3], words[2])\n    if true then",
    )];

    /// An update that the gate has followed is not followed again.
    pub static VERSION_IS_NEWER: &[Switch] = &[Switch::script(
        "gate_follow",
        "local version, have = tonumber(ARGV[3]), tonumber(sale.version)",
        "local have = tonumber(sale.version)\nlocal version = have + 1",
    )];

    /// An update is not followed while an earlier one is missing.
    pub static VERSION_HAS_NO_GAP: &[Switch] = &[Switch::script(
        "gate_follow",
        "elseif version ~= have + 1 then",
        "elseif false then",
    )];

    /// Units that come back go to the head of the waitlist in the script that frees them.
    pub static PROMOTION_IN_RELEASE: &[Switch] = &[Switch::script(
        "gate_follow",
        "if not promotion.serve(now, tonumber(ARGV[4])) then",
        "if false then",
    )];

    /// While anyone waits, new buyers wait too.
    pub static NEWCOMERS_WAIT: &[Switch] = &[Switch::script(
        "gate_admit",
        "if sale.waiting == 0 and wanted <= sale.free then",
        "if wanted <= sale.free then",
    )];

    /// The units of decisions that stand in the stream are counted with the free ones.
    pub static UNITS_STANDING: &[Switch] = &[Switch::script(
        "gate_tally",
        "partition.text(units) }",
        "'0' }",
    )];

    /// A lease is given back only by its owner.
    pub static LEASE_OWNER: &[Switch] = &[Switch::script(
        "lease_release",
        "or redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then",
        "then",
    )];
}

/// Guards in the statements and in the schema of the ledger.
pub mod ledger {
    use super::super::Switch;

    /// An order is in the ledger once.
    pub static ORDER_ONCE: &[Switch] = &[Switch::Schema("ALTER TABLE orders DROP PRIMARY KEY")];

    /// A buyer's idempotency key belongs to one order.
    pub static ORDER_ONCE_PER_KEY: &[Switch] = &[Switch::Schema(
        "ALTER TABLE orders DROP KEY orders_once_per_key",
    )];

    /// A buyer has one row of live units per voucher.
    pub static ONE_HOLDING: &[Switch] = &[Switch::Schema("ALTER TABLE holdings DROP PRIMARY KEY")];

    /// A buyer's live units stay within the limit.
    pub static HOLDING_WITHIN_LIMIT: &[Switch] = &[Switch::Schema(
        "ALTER TABLE holdings DROP CONSTRAINT holdings_within_limit",
    )];

    /// Stock falls only if there is as much.
    pub static STOCK_CONDITION: &[Switch] = &[Switch::statement(
        "WHERE s.stock_units >= taken.units",
        "WHERE (s.stock_units >= taken.units OR TRUE)",
    )];

    /// Stock stays between nothing and the total.
    pub static STOCK_IN_RANGE: &[Switch] = &[Switch::Schema(
        "ALTER TABLE voucher_stock DROP CONSTRAINT voucher_stock_in_range",
    )];

    /// The position moves only for whoever holds the newest fence.
    pub static FENCE: &[Switch] = &[Switch::statement(
        "AND fence = ? AND epoch = ?",
        "AND (fence = ? OR TRUE) AND epoch = ?",
    )];

    /// The position moves only from where the batch goes on, in its epoch, under its fence.
    pub static FENCED_POSITION: &[Switch] = &[Switch::statement(
        "AND fence = ? AND epoch = ? AND applied_seq = ? AND applied_ms = ? AND applied_no = ?",
        "AND (fence = ? OR epoch = ? OR applied_seq = ? OR applied_ms = ? OR applied_no = ? \
         OR TRUE)",
    )];

    /// An order changes its stage only from the stage in which it was read.
    pub static STATE_CONDITION: &[Switch] = &[Switch::statement(
        "WHERE o.status = ?",
        "WHERE (o.status = ? OR TRUE)",
    )];

    /// The sweep locks the orders that it expires.
    pub static SWEEP_LOCKS: &[Switch] = &[Switch::statement(
        "o.id LIMIT ? FOR UPDATE SKIP LOCKED",
        "o.id LIMIT ?",
    )];

    /// Units that were returned and that the gate has not heard of are counted with its free ones.
    pub static UNITS_RETURNED: &[Switch] = &[Switch::statement(
        "version > ?) AS returned",
        "version > ? AND FALSE) AS returned",
    )];

    /// Whoever waits for the ledger to catch up reads how far it has come.
    pub static POSITION: &[Switch] = &[Switch::statement(
        "SELECT fence, epoch, applied_seq, applied_ms, applied_no FROM partitions",
        "SELECT fence, epoch, ~0 AS applied_seq, applied_ms, applied_no FROM partitions",
    )];

    /// No guard: puts the clock of a sweep an hour ahead, so that nobody has to wait for deadlines.
    pub static AN_HOUR_LATER: &[Switch] = &[
        Switch::statement(
            "SELECT UTC_TIMESTAMP(3) AS now",
            "SELECT UTC_TIMESTAMP(3) + INTERVAL 1 HOUR AS now",
        ),
        Switch::statement(
            "o.expires_at <= UTC_TIMESTAMP(3)",
            "o.expires_at <= UTC_TIMESTAMP(3) + INTERVAL 1 HOUR",
        ),
    ];
}
