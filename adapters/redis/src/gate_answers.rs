//! The gate's answers, read.

use seckill_application::Fault;
use seckill_application::ports::{Admitted, NotLoaded, SaleFacts};
use seckill_domain::{
    Admission, Attempt, GateVersion, OrderId, PlaceAtFirst, Pulse, SaleStatus, SaleTerms, Ticket,
    Timestamp,
};

use crate::reply::Reply;

/// Why the gate cannot decide, if that is what it answered.
pub(crate) fn not_loaded(reply: &Reply) -> Result<Option<NotLoaded>, Fault> {
    Ok(match reply.kind() {
        "PARTITION" => Some(NotLoaded::Partition),
        "NOT_LOADED" => Some(match reply.text(1)? {
            "voucher" => NotLoaded::Voucher,
            "loading" => NotLoaded::Loading,
            "retired" => NotLoaded::Retired,
            _ => return Err(reply.senseless()),
        }),
        _ => None,
    })
}

/// The reply to a batch of attempts.
pub(crate) fn admitted(reply: &Reply, attempts: &[Attempt]) -> Result<Admitted, Fault> {
    if let Some(why) = not_loaded(reply)? {
        return Ok(Admitted::NotLoaded(why));
    }
    if reply.kind() == "BACKLOG_FULL" {
        return Ok(Admitted::BacklogFull);
    }
    let answers = reply.rest().get(4..).unwrap_or_default();
    if reply.kind() != "DECIDED" || answers.len() != attempts.len() {
        return Err(reply.senseless());
    }
    let admissions = answers.iter().zip(attempts);
    let admissions = admissions
        .map(|(answer, attempt)| admission(answer, attempt))
        .collect::<Option<_>>();
    let pulse = Pulse {
        free: reply.parsed(1)?,
        waiting: reply.parsed(2)?,
        waitlist_open: reply.text(3)? == "1",
        version: GateVersion::new(reply.parsed(4)?),
    };
    match admissions {
        Some(admissions) => Ok(Admitted::Decided { admissions, pulse }),
        None => Err(reply.senseless()),
    }
}

/// One answer. One that speaks of another order than it should is not the answer to this attempt.
fn admission(answer: &str, attempt: &Attempt) -> Option<Admission> {
    let (word, rest) = answer.split_once(' ').unwrap_or((answer, ""));
    let pair = || rest.split_once(' ');
    let triple = || {
        let (order, rest) = pair()?;
        let (position, ticket) = rest.split_once(' ')?;
        Some((order, position, ticket))
    };
    let this = |order: &str| {
        let order = order.parse::<OrderId>().ok()?;
        (order == attempt.order).then_some(order)
    };
    Some(match word {
        "granted" => Admission::Granted { order: this(rest)? },
        "waitlisted" => Admission::Waitlisted {
            order: this(triple()?.0)?,
            position: triple()?.1.parse().ok()?,
            ticket: Ticket::new(triple()?.2.parse().ok()?),
        },
        "replayed" => Admission::Replayed {
            order: pair()?.0.parse().ok()?,
            first: place_at_first(pair()?.1)?,
        },
        "key_reused" => Admission::KeyReused {
            order: rest.parse().ok()?,
        },
        "already_held" => Admission::AlreadyHeld {
            orders: rest
                .split_ascii_whitespace()
                .map(|order| order.parse().ok())
                .collect::<Option<_>>()?,
        },
        "already_waiting" => Admission::AlreadyWaiting {
            order: pair()?.0.parse().ok()?,
            position: pair()?.1.parse().ok()?,
        },
        "limit_exceeded" => Admission::LimitExceeded {
            remaining: rest.parse().ok()?,
        },
        "not_open" => Admission::NotOpen {
            opens_at: Timestamp::from_millis(rest.parse().ok()?),
        },
        "paused" => Admission::Paused,
        "closed" => Admission::Closed,
        "sold_out" => Admission::SoldOut,
        _ => return None,
    })
}

/// What a buyer was told at first.
pub(crate) fn place_at_first(word: &str) -> Option<PlaceAtFirst> {
    match word {
        "g" => Some(PlaceAtFirst::Granted),
        "w" => Some(PlaceAtFirst::Waitlisted),
        _ => None,
    }
}

/// What a buyer was told at first, as a word.
pub(crate) fn told_word(first: PlaceAtFirst) -> &'static str {
    match first {
        PlaceAtFirst::Granted => "g",
        PlaceAtFirst::Waitlisted => "w",
    }
}

/// A sale, or `None` if it is not loaded.
pub(crate) fn facts(reply: &Reply) -> Result<Option<SaleFacts>, Fault> {
    if not_loaded(reply)?.is_some() {
        return Ok(None);
    }
    let waitlist_capacity = reply.parsed(5)?;
    let waiting = reply.parsed(8)?;
    let terms = SaleTerms {
        status: status(reply.text(1)?).ok_or_else(|| reply.senseless())?,
        opens_at: Timestamp::from_millis(reply.parsed(2)?),
        closes_at: Timestamp::from_millis(reply.parsed(3)?),
        per_buyer_limit: reply.parsed(4)?,
        waitlist_capacity,
        total_units: reply.parsed(6)?,
    };
    let pulse = Pulse {
        free: reply.parsed(7)?,
        waiting,
        waitlist_open: waiting < waitlist_capacity,
        version: GateVersion::new(reply.parsed(9)?),
    };
    Ok(Some(SaleFacts { terms, pulse }))
}

fn status(word: &str) -> Option<SaleStatus> {
    Some(match word {
        "draft" => SaleStatus::Draft,
        "published" => SaleStatus::Published,
        "paused" => SaleStatus::Paused,
        "closed" => SaleStatus::Closed,
        _ => return None,
    })
}

/// A status, as a word.
pub(crate) fn status_word(status: SaleStatus) -> &'static str {
    match status {
        SaleStatus::Draft => "draft",
        SaleStatus::Published => "published",
        SaleStatus::Paused => "paused",
        SaleStatus::Closed => "closed",
    }
}
