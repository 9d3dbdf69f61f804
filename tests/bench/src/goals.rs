//! What the rows are to reach.

use serde::Serialize;

/// What a row is to reach.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Goal {
    /// More is better.
    AtLeast {
        /// Below it the row is missed.
        must: f64,
        /// What is hoped for.
        stretch: f64,
    },
    /// Less is better.
    AtMost {
        /// Above it the row is missed.
        must: f64,
        /// What is hoped for.
        stretch: f64,
    },
}

/// A row of the table.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Line {
    /// The goal's number, with a letter where a goal has several values.
    pub id: &'static str,
    /// What is measured, in a few words.
    pub what: &'static str,
    /// What `a` and `b` are counted in; `a ÷ b` is the value, or `a` alone where `b` is none.
    pub units: &'static str,
    /// What it is to reach.
    pub goal: Goal,
}

const fn least(
    id: &'static str,
    what: &'static str,
    units: &'static str,
    must: f64,
    stretch: f64,
) -> Line {
    let goal = Goal::AtLeast { must, stretch };
    Line {
        id,
        what,
        units,
        goal,
    }
}

const fn most(
    id: &'static str,
    what: &'static str,
    units: &'static str,
    must: f64,
    stretch: f64,
) -> Line {
    let goal = Goal::AtMost { must, stretch };
    Line {
        id,
        what,
        units,
        goal,
    }
}

/// Every row, in the order of the goals.
pub const LINES: [Line; 32] = [
    least(
        "G1",
        "HTTP purchases / raw EVALSHA, 64 connections",
        "1/s",
        0.75,
        1.0,
    ),
    least(
        "G2",
        "HTTP purchases / raw EVALSHA, 256 connections",
        "1/s",
        0.65,
        1.0,
    ),
    most(
        "G3",
        "Redis CPU per order, ours / raw EVALSHA",
        "us",
        0.40,
        0.25,
    ),
    most(
        "G4",
        "app CPU per purchase / per static reply",
        "us",
        2.5,
        1.6,
    ),
    least(
        "G5",
        "HTTP purchases, fsync always / everysec",
        "1/s",
        0.7,
        0.9,
    ),
    least(
        "G6a",
        "always: 32 a call / 1 a call, 32 connections",
        "1/s",
        8.0,
        20.0,
    ),
    least(
        "G6b",
        "always: 32 a call / 1 a call, 512 in flight",
        "1/s",
        1.5,
        3.0,
    ),
    least("G7", "drain / one-by-one consumer", "1/s", 30.0, 80.0),
    least(
        "G8a",
        "drain / admission, at the same time",
        "1/s",
        0.5,
        1.0,
    ),
    most(
        "G8b",
        "or: a backlog of 100 k is drained in",
        "s",
        10.0,
        5.0,
    ),
    most("G9a", "p99 at 50 % of capacity / idle p50", "ms", 10.0, 5.0),
    most("G9b", "p99 at 50 % of capacity", "ms", 15.0, 15.0),
    least(
        "G10a",
        "goodput at 2x offered load / at 1x",
        "1/s",
        0.9,
        0.97,
    ),
    most(
        "G10b",
        "p99 of accepted at 2x / p99 at 80 %",
        "ms",
        3.0,
        2.0,
    ),
    least(
        "G11a",
        "rejections after sell-out / static replies",
        "1/s",
        0.75,
        0.9,
    ),
    most("G11b", "Redis calls per rejection", "calls", 0.05, 0.01),
    most(
        "G12a",
        "Redis memory per order in flight",
        "bytes",
        250.0,
        180.0,
    ),
    most(
        "G12b",
        "Redis memory per waiting buyer",
        "bytes",
        130.0,
        110.0,
    ),
    most("G12c", "app memory per request in flight", "KiB", 4.0, 2.0),
    most(
        "G14",
        "granted -> in the ledger, p99 at 50 % load",
        "ms",
        300.0,
        100.0,
    ),
    least("G15a", "expiry in batches / one by one", "1/s", 30.0, 80.0),
    most("G15b", "lateness of expiry, p99", "s", 5.0, 2.0),
    most("G15c", "release -> promotion, p99", "s", 1.0, 0.2),
    most(
        "G16a",
        "10 k pending of a killed worker, after its lease",
        "s",
        3.0,
        1.0,
    ),
    most(
        "G16b",
        "reopening after a Redis restart, beyond 1.5x its load",
        "s",
        2.0,
        1.0,
    ),
    least(
        "G17a",
        "tokens never seen / tokens seen before",
        "1/s",
        0.9,
        0.97,
    ),
    least("G17b", "log level info / no log", "1/s", 0.9, 0.95),
    least(
        "G18a",
        "whole system / published design: requests",
        "1/s",
        3.0,
        5.0,
    ),
    least(
        "G18b",
        "whole system / published design: drain",
        "1/s",
        30.0,
        80.0,
    ),
    most("G19a", "p50 at 2,000/s open loop", "ms", 5.0, 2.0),
    most(
        "G19b",
        "SQL statements per purchase on its path",
        "calls",
        0.0,
        0.0,
    ),
    most(
        "G19c",
        "Redis calls per purchase on its path",
        "calls",
        1.0,
        0.2,
    ),
];
