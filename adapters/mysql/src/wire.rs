//! The JSON that the ledger stores: updates for the gate, and parked messages. Versioned, because
//! rows outlive the version of the service that wrote them. Ids are strings, as everywhere outside
//! the process.

use seckill_application::ports::Unreadable;
use seckill_domain::{
    AdjustmentId, BuyerId, Claim, Decision, GateChange, IdempotencyKey, LeftReason, OrderId,
    SaleTerms, Ticket, Timestamp, VoucherId,
};
use serde::{Deserialize, Serialize};

use crate::fault::Trouble;
use crate::row::{read_sale, sale_word};

const VERSION: u32 = 1;

/// Holds no order: no buyer is numbered so.
const NOBODY: u64 = u64::MAX;

#[derive(Serialize, Deserialize)]
struct Payload<T> {
    v: u32,
    #[serde(flatten)]
    body: T,
}

#[derive(Serialize, Deserialize)]
struct Changes {
    changes: Vec<Change>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Change {
    Release {
        order: String,
        buyer: String,
        quantity: u32,
        /// Whose place is given up: nobody gives units back then. So it is a release of nothing by
        /// [`NOBODY`] to a version of the service from before there was such a change.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place_of: Option<String>,
    },
    AddUnits {
        units: u32,
    },
    SetTerms {
        status: String,
        opens_at_ms: i64,
        closes_at_ms: i64,
        per_buyer_limit: u32,
        waitlist_capacity: u32,
        total_units: u32,
    },
    RestoreHolder(ClaimText),
    AppendAgain(ClaimText),
}

impl From<&GateChange> for Change {
    fn from(change: &GateChange) -> Self {
        match change {
            GateChange::Release {
                order,
                buyer,
                quantity,
            } => Self::Release {
                order: order.to_string(),
                buyer: buyer.to_string(),
                quantity: *quantity,
                place_of: None,
            },
            GateChange::DropPlace { order, buyer } => Self::Release {
                order: order.to_string(),
                buyer: NOBODY.to_string(),
                quantity: 0,
                place_of: Some(buyer.to_string()),
            },
            GateChange::AddUnits { units } => Self::AddUnits { units: *units },
            GateChange::SetTerms(terms) => Self::SetTerms {
                status: sale_word(terms.status).to_owned(),
                opens_at_ms: terms.opens_at.as_millis(),
                closes_at_ms: terms.closes_at.as_millis(),
                per_buyer_limit: terms.per_buyer_limit,
                waitlist_capacity: terms.waitlist_capacity,
                total_units: terms.total_units,
            },
            GateChange::RestoreHolder(claim) => Self::RestoreHolder(claim.into()),
            GateChange::AppendAgain(claim) => Self::AppendAgain(claim.into()),
        }
    }
}

impl TryFrom<Change> for GateChange {
    type Error = Trouble;

    fn try_from(change: Change) -> Result<Self, Trouble> {
        Ok(match change {
            Change::Release {
                order,
                buyer,
                quantity,
                place_of: None,
            } => Self::Release {
                order: OrderId::new(number(&order)?),
                buyer: BuyerId::new(number(&buyer)?),
                quantity,
            },
            Change::Release {
                order,
                place_of: Some(buyer),
                ..
            } => Self::DropPlace {
                order: OrderId::new(number(&order)?),
                buyer: BuyerId::new(number(&buyer)?),
            },
            Change::AddUnits { units } => Self::AddUnits { units },
            Change::SetTerms {
                status,
                opens_at_ms,
                closes_at_ms,
                per_buyer_limit,
                waitlist_capacity,
                total_units,
            } => Self::SetTerms(SaleTerms {
                status: read_sale(&status)?,
                opens_at: Timestamp::from_millis(opens_at_ms),
                closes_at: Timestamp::from_millis(closes_at_ms),
                per_buyer_limit,
                waitlist_capacity,
                total_units,
            }),
            Change::RestoreHolder(claim) => Self::RestoreHolder(claim.try_into()?),
            Change::AppendAgain(claim) => Self::AppendAgain(claim.try_into()?),
        })
    }
}

fn number(text: &str) -> Result<u64, Trouble> {
    text.parse().map_err(broken)
}

fn broken(error: impl std::error::Error + Send + Sync + 'static) -> Trouble {
    Trouble::Broken(Box::new(error))
}

fn write<T: Serialize>(body: T) -> Result<String, Trouble> {
    serde_json::to_string(&Payload { v: VERSION, body }).map_err(broken)
}

fn read<'t, T: Deserialize<'t>>(payload: &'t str) -> Result<T, Trouble> {
    let payload: Payload<T> = serde_json::from_str(payload).map_err(broken)?;
    if payload.v == VERSION {
        Ok(payload.body)
    } else {
        let version = payload.v;
        Err(Trouble::broken(format!("payload of version {version}")))
    }
}

/// What the gate has to follow, as stored.
pub(crate) fn write_changes(changes: &[GateChange]) -> Result<String, Trouble> {
    let changes = changes.iter().map(Change::from).collect();
    write(Changes { changes })
}

/// Reads what [`write_changes`] wrote.
pub(crate) fn read_changes(payload: &str) -> Result<Vec<GateChange>, Trouble> {
    let body: Changes = read(payload)?;
    body.changes.into_iter().map(GateChange::try_from).collect()
}

/// What stored changes say if they are about an order.
pub(crate) fn text_of_order(order: OrderId) -> String {
    format!("\"order\":\"{order}\"")
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ParkedText {
    Unreadable {
        raw: String,
        reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        named: Option<Box<ParkedText>>,
    },
    Granted(ClaimText),
    Promoted(ClaimText),
    Lost(ClaimText),
    Joined {
        claim: ClaimText,
        ticket: String,
    },
    Left {
        claim: ClaimText,
        reason: String,
    },
    Withdrawn {
        voucher: String,
        units: u32,
        adjustment: String,
    },
}

#[derive(Serialize, Deserialize)]
struct ClaimText {
    order: String,
    voucher: String,
    buyer: String,
    quantity: u32,
    key: Option<String>,
}

impl From<&Claim> for ClaimText {
    fn from(claim: &Claim) -> Self {
        Self {
            order: claim.order.to_string(),
            voucher: claim.voucher.to_string(),
            buyer: claim.buyer.to_string(),
            quantity: claim.quantity,
            key: claim.key.as_ref().map(ToString::to_string),
        }
    }
}

impl TryFrom<ClaimText> for Claim {
    type Error = Trouble;

    fn try_from(text: ClaimText) -> Result<Self, Trouble> {
        let key: Option<IdempotencyKey> = text
            .key
            .map(|key| key.parse())
            .transpose()
            .map_err(broken)?;
        Ok(Self {
            order: OrderId::new(number(&text.order)?),
            voucher: VoucherId::new(number(&text.voucher)?),
            buyer: BuyerId::new(number(&text.buyer)?),
            quantity: text.quantity,
            key,
        })
    }
}

/// An entry that could not be read, with the decision that it counts as, as stored.
pub(crate) fn write_unreadable(
    body: &Unreadable,
    named: Option<&Decision>,
) -> Result<String, Trouble> {
    write(ParkedText::Unreadable {
        raw: body.raw.clone(),
        reason: body.reason.clone(),
        named: named.map(|named| Box::new(decision_text(named))),
    })
}

/// A decision, as stored.
pub(crate) fn write_decision(decision: &Decision) -> Result<String, Trouble> {
    write(decision_text(decision))
}

fn decision_text(decision: &Decision) -> ParkedText {
    match decision {
        Decision::Granted(claim) => ParkedText::Granted(claim.into()),
        Decision::Promoted(claim) => ParkedText::Promoted(claim.into()),
        Decision::Lost(claim) => ParkedText::Lost(claim.into()),
        Decision::Joined { claim, ticket } => ParkedText::Joined {
            claim: claim.into(),
            ticket: ticket.get().to_string(),
        },
        Decision::Left { claim, reason } => ParkedText::Left {
            claim: claim.into(),
            reason: left_word(*reason).to_owned(),
        },
        Decision::Withdrawn {
            voucher,
            units,
            adjustment,
        } => ParkedText::Withdrawn {
            voucher: voucher.to_string(),
            units: *units,
            adjustment: adjustment.to_string(),
        },
    }
}

/// What is parked.
pub(crate) enum Parked {
    /// An entry that could not be read.
    Entry(Unreadable),
    /// A decision that could not be applied.
    Decision(Decision),
}

impl Parked {
    /// What was decided, as far as it could be read.
    fn decision(self) -> Option<Decision> {
        match self {
            Self::Entry(body) => body.named,
            Self::Decision(decision) => Some(decision),
        }
    }
}

/// Reads what [`write_unreadable`] and [`write_decision`] wrote.
pub(crate) fn read_parked(payload: &str) -> Result<Parked, Trouble> {
    parked(read(payload)?)
}

fn parked(text: ParkedText) -> Result<Parked, Trouble> {
    Ok(Parked::Decision(match text {
        ParkedText::Unreadable { raw, reason, named } => {
            let named = named.map(|named| parked(*named)).transpose()?;
            return Ok(Parked::Entry(Unreadable {
                raw,
                reason,
                named: named.and_then(Parked::decision),
            }));
        }
        ParkedText::Granted(claim) => Decision::Granted(claim.try_into()?),
        ParkedText::Promoted(claim) => Decision::Promoted(claim.try_into()?),
        ParkedText::Lost(claim) => Decision::Lost(claim.try_into()?),
        ParkedText::Joined { claim, ticket } => Decision::Joined {
            claim: claim.try_into()?,
            ticket: Ticket::new(number(&ticket)?),
        },
        ParkedText::Left { claim, reason } => Decision::Left {
            claim: claim.try_into()?,
            reason: read_left(&reason)?,
        },
        ParkedText::Withdrawn {
            voucher,
            units,
            adjustment,
        } => Decision::Withdrawn {
            voucher: VoucherId::new(number(&voucher)?),
            units,
            adjustment: AdjustmentId::new(number(&adjustment)?),
        },
    }))
}

/// Reads what [`write_decision`] wrote; `None` for an entry that could not be read.
pub(crate) fn read_decision(payload: &str) -> Result<Option<Decision>, Trouble> {
    Ok(read_parked(payload)?.decision())
}

/// The claim of a parked decision; `None` where there is none.
pub(crate) fn read_claim(payload: &str) -> Result<Option<Claim>, Trouble> {
    let decision = read_decision(payload)?;
    Ok(decision.and_then(|decision| decision.claim().cloned()))
}

fn left_word(reason: LeftReason) -> &'static str {
    match reason {
        LeftReason::Withdrawn => "withdrawn",
        LeftReason::ClosedOut => "closed_out",
        LeftReason::NotEnoughUnits => "not_enough_units",
        LeftReason::LimitReached => "limit_reached",
    }
}

fn read_left(word: &str) -> Result<LeftReason, Trouble> {
    Ok(match word {
        "withdrawn" => LeftReason::Withdrawn,
        "closed_out" => LeftReason::ClosedOut,
        "not_enough_units" => LeftReason::NotEnoughUnits,
        "limit_reached" => LeftReason::LimitReached,
        other => return Err(Trouble::broken(format!("{other:?} is no LeftReason"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_about_an_order_are_found_by_a_piece_of_their_text() {
        let release = |order| GateChange::Release {
            order: OrderId::new(order),
            buyer: BuyerId::new(7),
            quantity: 1,
        };
        let text = write_changes(&[release(12), release(340)]).expect("changes");
        let says = |order| text.contains(&text_of_order(OrderId::new(order)));
        assert!(says(12) && says(340));
        assert!(![1, 2, 7, 34, 40, 123].into_iter().any(says));
    }

    /// Both run side by side while a new version is rolled out.
    #[test]
    fn a_place_that_is_dropped_is_a_release_of_nothing_to_the_version_before() {
        let dropped = GateChange::DropPlace {
            order: OrderId::new(12),
            buyer: BuyerId::new(7),
        };
        let text = write_changes(std::slice::from_ref(&dropped)).expect("changes");
        let release = r#"{"release":{"order":"12","buyer":"18446744073709551615","quantity":0,"place_of":"7"}}"#;
        assert_eq!(text, format!(r#"{{"v":1,"changes":[{release}]}}"#));
        assert_eq!(read_changes(&text).expect("changes"), [dropped]);
    }
}
