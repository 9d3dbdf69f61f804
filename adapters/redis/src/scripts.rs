//! The scripts: one table of what each needs and answers. A test holds the headers in `lua/` to it.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::keys::KeyName::{
    self, Counter, Decided, Delays, Holders, Lease, Loading, Meta, Next, Previous, Sale, Seats,
    StagedHolders, StagedSeats, StagedUses, StagedWaiters, Stream, Uses, Waiters, Workers,
};

/// A script, joined with the steps it shares with others.
pub(crate) struct Script {
    /// Its file in `lua/`, without the extension.
    pub(crate) name: &'static str,
    /// Its keys, in order.
    pub(crate) keys: &'static [KeyName],
    /// The names of its arguments, in order; the last may repeat.
    #[cfg_attr(not(test), expect(dead_code, reason = "held against the headers"))]
    pub(crate) args: &'static [&'static str],
    /// The first words of its answers.
    #[cfg_attr(not(test), expect(dead_code, reason = "held against the headers"))]
    pub(crate) answers: &'static [&'static str],
    /// Files and their texts, in the order they are joined.
    parts: &'static [(&'static str, &'static str)],
    joined: OnceLock<Joined>,
}

/// A script as Redis gets it.
pub(crate) struct Joined {
    pub(crate) source: String,
    /// By which Redis knows it.
    pub(crate) hash: String,
}

impl Script {
    /// Its text and hash.
    pub(crate) fn joined(&self) -> &Joined {
        self.joined
            .get_or_init(|| self.joined_with(&HashMap::new()))
    }

    /// Its text and hash with other texts in the place of some of its files.
    pub(crate) fn joined_with(&self, texts: &HashMap<&str, String>) -> Joined {
        let text = |(file, text): &(&'static str, &'static str)| -> String {
            texts.get(file).map_or(*text, String::as_str).to_owned()
        };
        let source = self.parts.iter().map(text).collect::<Vec<_>>().join("\n");
        let hash = redis::Script::new(&source).get_hash().to_owned();
        Joined { source, hash }
    }

    /// What one of its files says.
    pub(crate) fn part(&self, file: &str) -> Option<&'static str> {
        let mut parts = self.parts.iter();
        parts.find(|(name, _)| *name == file).map(|(_, text)| *text)
    }

    /// Whether it works on a partition and is told the epoch first.
    pub(crate) fn is_told_epoch(&self) -> bool {
        self.keys.first() == Some(&Meta)
    }
}

const PARTITION: &[KeyName] = &[Meta, Decided, Stream];
const SALE: &[KeyName] = &[
    Meta, Decided, Stream, Sale, Holders, Waiters, Seats, Uses, Loading,
];
const SALE_AND_STAGED: &[KeyName] = &[
    Meta,
    Decided,
    Stream,
    Sale,
    Holders,
    Waiters,
    Seats,
    Uses,
    Loading,
    StagedHolders,
    StagedWaiters,
    StagedSeats,
    StagedUses,
];

macro_rules! source {
    ($file:literal) => {
        include_str!(concat!("../../../lua/", $file, ".lua"))
    };
    (lib $file:ident) => {
        include_str!(concat!("../../../lua/lib/", stringify!($file), ".lua"))
    };
}

macro_rules! script {
    (
        $name:ident, $file:literal, [$($lib:ident),*],
        keys: $keys:expr,
        args: [$($arg:literal),*],
        answers: [$($answer:literal),*],
    ) => {
        pub(crate) static $name: Script = Script {
            name: $file,
            keys: $keys,
            args: &[$($arg),*],
            answers: &[$($answer),*],
            parts: &[
                $((concat!("lib/", stringify!($lib)), source!(lib $lib)),)*
                ($file, source!($file)),
            ],
            joined: OnceLock::new(),
        };
    };
}

script! {
    DELAY_CLAIM, "delay_claim", [],
    keys: &[Delays],
    args: ["max", "hold_ms"],
    answers: ["CLAIMED"],
}
script! {
    DELAY_NEXT, "delay_next", [],
    keys: &[Delays],
    args: [],
    answers: ["NEXT", "NONE"],
}
script! {
    DELAY_SCHEDULE, "delay_schedule", [],
    keys: &[Delays],
    args: ["channel", "due..."],
    answers: ["SCHEDULED"],
}
script! {
    GATE_ADMIT, "gate_admit", [partition, sale, holders, seats, waitlist, repeats],
    keys: SALE,
    args: ["epoch", "voucher", "backlog", "attempts..."],
    answers: ["DECIDED", "BACKLOG_FULL", "NOT_LOADED", "PARTITION", "STALE"],
}
script! {
    GATE_FACTS, "gate_facts", [partition, sale],
    keys: SALE,
    args: ["epoch", "voucher"],
    answers: ["FACTS", "NOT_LOADED", "PARTITION", "STALE"],
}
script! {
    GATE_FIND, "gate_find", [partition],
    keys: PARTITION,
    args: ["epoch", "order"],
    answers: ["FOUND", "GONE", "NONE", "PARTITION", "STALE"],
}
script! {
    GATE_FOLLOW, "gate_follow", [partition, sale, holders, seats, waitlist, promotion],
    keys: SALE,
    args: ["epoch", "voucher", "version", "max", "changes..."],
    answers: ["APPLIED", "ALREADY_APPLIED", "GAP", "NOT_LOADED", "PARTITION", "STALE"],
}
script! {
    GATE_HELD, "gate_held", [partition, sale, seats, waitlist],
    keys: SALE,
    args: ["epoch", "voucher", "buyers..."],
    answers: ["HELD", "NOT_LOADED", "PARTITION", "STALE"],
}
script! {
    GATE_HOLDERS, "gate_holders", [partition, sale, holders],
    keys: SALE,
    args: ["epoch", "voucher", "cursor", "count"],
    answers: ["PAGE", "NOT_LOADED", "PARTITION", "STALE"],
}
script! {
    GATE_LEAVE, "gate_leave", [partition, sale, holders, seats, waitlist],
    keys: SALE,
    args: ["epoch", "voucher", "buyer"],
    answers: ["LEFT", "NOT_WAITING", "ALREADY_PROMOTED", "NOT_LOADED", "PARTITION", "STALE"],
}
script! {
    GATE_PLACE, "gate_place", [partition, sale, holders, seats, waitlist],
    keys: SALE,
    args: ["epoch", "voucher", "buyer"],
    answers: ["WAITING", "PROMOTED", "NONE", "NOT_LOADED", "PARTITION", "STALE"],
}
script! {
    GATE_PROMOTE, "gate_promote", [partition, sale, holders, seats, waitlist, promotion],
    keys: SALE,
    args: ["epoch", "voucher", "max"],
    answers: ["DONE", "NOT_LOADED", "PARTITION", "STALE"],
}
script! {
    GATE_RETIRE, "gate_retire", [partition, sale],
    keys: SALE_AND_STAGED,
    args: ["epoch", "voucher"],
    answers: ["RETIRED", "REFUSED", "PARTITION", "STALE"],
}
script! {
    GATE_STANDING, "gate_standing", [seats, standing],
    keys: &[Holders, Waiters, Seats],
    args: ["buyer", "order"],
    answers: ["HOLDS", "WAITS", "NEITHER"],
}
script! {
    GATE_TALLY, "gate_tally", [partition, sale],
    keys: SALE,
    args: ["epoch", "voucher", "after", "max"],
    answers: ["TALLY", "TOO_MANY", "NOT_LOADED", "PARTITION", "STALE"],
}
script! {
    GATE_WAITERS, "gate_waiters", [partition, sale, seats, waitlist],
    keys: SALE,
    args: ["epoch", "voucher", "after", "count"],
    answers: ["PAGE", "NOT_LOADED", "PARTITION", "STALE"],
}
script! {
    GATE_WITHDRAW, "gate_withdraw", [partition, sale],
    keys: SALE,
    args: ["epoch", "voucher", "units", "adjustment"],
    answers: ["WITHDRAWN", "NOT_ENOUGH", "NOT_LOADED", "PARTITION", "STALE"],
}
script! {
    IDS_BLOCK, "ids_block", [],
    keys: &[Counter],
    args: ["size", "start_s", "max"],
    answers: ["BLOCK", "WAIT", "FULL"],
}
script! {
    IDS_WORKER, "ids_worker", [],
    keys: &[Workers],
    args: ["token", "number", "held_ms", "issued_ms", "lease_ms", "numbers"],
    answers: ["LEASED", "WAIT", "FULL"],
}
script! {
    LEASE_ACQUIRE, "lease_acquire", [],
    keys: &[Lease],
    args: ["owner", "ttl_ms"],
    answers: ["HELD", "BUSY"],
}
script! {
    LEASE_RELEASE, "lease_release", [],
    keys: &[Lease],
    args: ["owner"],
    answers: ["RELEASED", "LOST"],
}
script! {
    LEASE_RENEW, "lease_renew", [],
    keys: &[Lease],
    args: ["owner", "ttl_ms"],
    answers: ["HELD", "LOST"],
}
script! {
    LOADER_ABANDON, "loader_abandon", [],
    keys: &[Loading],
    args: ["token"],
    answers: ["DONE"],
}
script! {
    LOADER_APPEND_AGAIN, "loader_append_again", [partition, loading],
    keys: SALE,
    args: ["epoch", "voucher", "token", "claims..."],
    answers: ["DONE", "NOT_MINE", "PARTITION", "STALE"],
}
script! {
    LOADER_BEGIN_EPOCH, "loader_begin_epoch", [],
    keys: &[Meta, Decided, Stream, Previous, Next],
    args: ["epoch", "new", "applied", "group"],
    answers: ["BEGUN", "NOT_NEWER", "STALE"],
}
script! {
    LOADER_BEGIN_LOAD, "loader_begin_load", [partition, loading],
    keys: SALE,
    args: ["epoch", "voucher", "token", "ttl_ms"],
    answers: ["BEGUN", "BUSY", "PARTITION", "STALE"],
}
script! {
    LOADER_LOAD, "loader_load", [partition, loading, holders, seats, waitlist],
    keys: SALE_AND_STAGED,
    args: ["epoch", "voucher", "token", "place", "holders", "seats", "rest..."],
    answers: ["DONE", "NOT_MINE", "PARTITION", "STALE"],
}
script! {
    LOADER_LOSE, "loader_lose", [partition],
    keys: PARTITION,
    args: ["epoch", "voucher", "claims..."],
    answers: ["TAKEN", "PARTITION", "STALE"],
}
script! {
    LOADER_OFFER, "loader_offer", [partition, sale, holders, seats, waitlist, standing, offers],
    keys: SALE,
    args: ["epoch", "voucher", "claims..."],
    answers: ["TAKEN", "NOT_LOADED", "PARTITION", "STALE"],
}
script! {
    LOADER_OPEN, "loader_open", [partition, loading],
    keys: SALE_AND_STAGED,
    args: ["epoch", "voucher", "token", "applied", "status", "opens_at", "closes_at", "limit", "capacity", "total", "free", "version", "chunks"],
    answers: ["OPENED", "BEHIND", "NOT_MINE", "PARTITION", "STALE"],
}
script! {
    LOADER_PARTITION, "loader_partition", [partition],
    keys: PARTITION,
    args: ["epoch", "group"],
    answers: ["OPEN", "PARTITION", "STALE"],
}
script! {
    LOADER_SURVIVORS, "loader_survivors", [seats],
    keys: &[Holders, Waiters, Seats],
    args: ["phase", "cursor", "count"],
    answers: ["PAGE"],
}
script! {
    LOADER_UNLOAD, "loader_unload", [],
    keys: &[Sale],
    args: [],
    answers: ["DONE"],
}
script! {
    STREAM_ACK, "stream_ack", [],
    keys: &[Meta, Stream],
    args: ["epoch", "group", "applied", "ids..."],
    answers: ["DONE", "MOVED"],
}
script! {
    STREAM_BACKLOG, "stream_backlog", [partition],
    keys: PARTITION,
    args: ["epoch", "group"],
    answers: ["BACKLOG", "PARTITION", "STALE"],
}
script! {
    STREAM_TAKE_OVER, "stream_take_over", [],
    keys: &[Stream],
    args: ["group", "consumer", "max"],
    answers: ["PENDING"],
}
script! {
    STREAM_TRIM, "stream_trim", [partition],
    keys: PARTITION,
    args: ["epoch", "group", "up_to", "keep_ms", "max"],
    answers: ["REMOVED", "PARTITION", "STALE"],
}

/// Every script.
pub(crate) static ALL: [&Script; 37] = [
    &DELAY_CLAIM,
    &DELAY_NEXT,
    &DELAY_SCHEDULE,
    &GATE_ADMIT,
    &GATE_FACTS,
    &GATE_FIND,
    &GATE_FOLLOW,
    &GATE_HELD,
    &GATE_HOLDERS,
    &GATE_LEAVE,
    &GATE_PLACE,
    &GATE_PROMOTE,
    &GATE_RETIRE,
    &GATE_STANDING,
    &GATE_TALLY,
    &GATE_WAITERS,
    &GATE_WITHDRAW,
    &IDS_BLOCK,
    &IDS_WORKER,
    &LEASE_ACQUIRE,
    &LEASE_RELEASE,
    &LEASE_RENEW,
    &LOADER_ABANDON,
    &LOADER_APPEND_AGAIN,
    &LOADER_BEGIN_EPOCH,
    &LOADER_BEGIN_LOAD,
    &LOADER_LOAD,
    &LOADER_LOSE,
    &LOADER_OFFER,
    &LOADER_OPEN,
    &LOADER_PARTITION,
    &LOADER_SURVIVORS,
    &LOADER_UNLOAD,
    &STREAM_ACK,
    &STREAM_BACKLOG,
    &STREAM_TAKE_OVER,
    &STREAM_TRIM,
];

#[cfg(test)]
mod tests;
