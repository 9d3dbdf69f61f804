//! A voucher on offer: what an administrator sets, and when it may still change.

use std::time::Duration;

use crate::{
    GateVersion, Money, SaleStatus, SaleTerms, Timestamp, Transition, VoucherId, is_plain_line,
    is_plain_text,
};

/// When a voucher is on sale: from `opens_at`, until just before `closes_at`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SaleWindow {
    /// First instant of the sale. May lie in the past.
    pub opens_at: Timestamp,
    /// First instant after the sale.
    pub closes_at: Timestamp,
}

/// What an administrator sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoucherTerms {
    /// 1 to 200 characters in one line; see [`is_plain_line`].
    pub title: String,
    /// At most 2,000 characters; see [`is_plain_text`].
    pub description: Option<String>,
    /// What the voucher is worth.
    pub face_value: Money,
    /// What a unit costs; may be 0. Same currency as the face value.
    pub price: Money,
    /// Most live units one buyer may have: 1 to 1,000.
    pub per_buyer_limit: u32,
    /// When it is on sale.
    pub window: SaleWindow,
    /// How long an order may stay unpaid: 1 to 86,400 seconds.
    pub payment_window: Duration,
    /// Most buyers who may wait: 0 (none) to 1,000,000.
    pub waitlist_capacity: u32,
}

/// A voucher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Voucher {
    /// Its number.
    pub id: VoucherId,
    /// What an administrator set.
    pub terms: VoucherTerms,
    /// Units the sale has in all.
    pub total_units: u32,
    /// Units that are in no live order and not parked, as the ledger counts them.
    pub stock_units: u32,
    /// Where it is in its life.
    pub status: SaleStatus,
    /// The number of the last transaction that changed its units or settings.
    pub version: GateVersion,
    /// When it was created.
    pub created_at: Timestamp,
    /// Whether it has left the gate for good: closed, and nothing about it unsettled.
    pub retired: bool,
}

/// One field that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {rule}")]
pub struct Invalid {
    /// The field's name on the wire.
    pub field: &'static str,
    /// What is allowed.
    pub rule: &'static str,
}

/// A change of some of a voucher's settings; `None` leaves a setting as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Amendment {
    /// New title.
    pub title: Option<String>,
    /// New description; an empty one means none.
    pub description: Option<String>,
    /// New face value in minor units.
    pub face_value_minor: Option<u64>,
    /// New price in minor units.
    pub price_minor: Option<u64>,
    /// New number of units; only of a draft.
    pub total_units: Option<u32>,
    /// New limit per buyer; only of a draft.
    pub per_buyer_limit: Option<u32>,
    /// New opening; only of a draft.
    pub opens_at: Option<Timestamp>,
    /// New closing.
    pub closes_at: Option<Timestamp>,
    /// New payment window; only of a draft.
    pub payment_window: Option<Duration>,
    /// New waitlist capacity.
    pub waitlist_capacity: Option<u32>,
}

/// Why an administrator's command is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VoucherRefusal {
    /// Fields that do not fit.
    #[error("some settings do not fit")]
    Invalid(Vec<Invalid>),
    /// These settings cannot change after publishing.
    #[error("frozen after publishing: {}", .0.join(", "))]
    Frozen(Vec<&'static str>),
    /// The command does not fit the voucher's status.
    #[error("not possible in this status")]
    WrongStatus(SaleStatus),
}

const TITLE_CHARS_MAX: usize = 200;
const DESCRIPTION_CHARS_MAX: usize = 2_000;
const PLAIN: &str = "no control characters, and none that override the direction of text";
const TOTAL_UNITS_MAX: u32 = 100_000_000;
const LIMIT_MAX: u32 = 1_000;
const WAITLIST_CAPACITY_MAX: u32 = 1_000_000;
const PAYMENT_WINDOW_S_MAX: u64 = 86_400;
const MINOR_MAX: u64 = 1_000_000_000_000;

impl VoucherTerms {
    /// Every setting of a draft that does not fit, with what is allowed.
    pub fn check(&self, total_units: u32) -> Result<(), VoucherRefusal> {
        self.check_with(Some(total_units))
    }

    fn check_with(&self, total_units: Option<u32>) -> Result<(), VoucherRefusal> {
        let title_chars = self.title.trim().chars().count();
        let description_chars = self
            .description
            .as_deref()
            .map_or(0, |text| text.chars().count());
        let window_s = self.payment_window.as_secs();
        let rules = [
            (
                (1..=TITLE_CHARS_MAX).contains(&title_chars),
                "title",
                "1 to 200 characters",
            ),
            (is_plain_line(&self.title), "title", PLAIN),
            (
                description_chars <= DESCRIPTION_CHARS_MAX,
                "description",
                "at most 2000 characters",
            ),
            (
                self.description.as_deref().is_none_or(is_plain_text),
                "description",
                PLAIN,
            ),
            (
                self.face_value.minor <= MINOR_MAX,
                "face_value_minor",
                "0 to 1000000000000",
            ),
            (
                self.price.minor <= MINOR_MAX,
                "price_minor",
                "0 to 1000000000000",
            ),
            (
                total_units.is_none_or(|units| (1..=TOTAL_UNITS_MAX).contains(&units)),
                "total_units",
                "1 to 100000000",
            ),
            (
                (1..=LIMIT_MAX).contains(&self.per_buyer_limit),
                "per_buyer_limit",
                "1 to 1000",
            ),
            (
                self.window.opens_at < self.window.closes_at,
                "closes_at",
                "later than opens_at",
            ),
            (
                (1..=PAYMENT_WINDOW_S_MAX).contains(&window_s),
                "payment_window_s",
                "1 to 86400 seconds",
            ),
            (
                self.waitlist_capacity <= WAITLIST_CAPACITY_MAX,
                "waitlist_capacity",
                "0 to 1000000; 0 for no waitlist",
            ),
        ];
        let broken: Vec<Invalid> = rules
            .into_iter()
            .filter(|(fits, ..)| !fits)
            .map(|(_, field, rule)| Invalid { field, rule })
            .collect();
        if broken.is_empty() {
            Ok(())
        } else {
            Err(VoucherRefusal::Invalid(broken))
        }
    }
}

impl Voucher {
    /// What the gate has to know.
    pub fn sale_terms(&self) -> SaleTerms {
        SaleTerms {
            status: self.status,
            opens_at: self.terms.window.opens_at,
            closes_at: self.terms.window.closes_at,
            per_buyer_limit: self.terms.per_buyer_limit,
            waitlist_capacity: self.terms.waitlist_capacity,
            total_units: self.total_units,
        }
    }

    /// Whether the gate has to know it: from publishing until it is retired.
    pub fn is_at_gate(&self) -> bool {
        self.status != SaleStatus::Draft && !self.retired
    }

    /// Whether so many units may be added.
    pub fn has_room_for(&self, units: u32) -> bool {
        self.total_units.saturating_add(units) <= TOTAL_UNITS_MAX
    }

    /// Puts a draft on sale.
    pub fn publish(&mut self, now: Timestamp) -> Result<Transition, VoucherRefusal> {
        match self.status {
            SaleStatus::Draft if self.terms.window.closes_at <= now => {
                let rule = "in the future when the voucher is published";
                Err(VoucherRefusal::Invalid(vec![Invalid {
                    field: "closes_at",
                    rule,
                }]))
            }
            SaleStatus::Draft => Ok(self.enter(SaleStatus::Published)),
            SaleStatus::Published => Ok(Transition::AlreadyApplied),
            SaleStatus::Paused | SaleStatus::Closed => {
                Err(VoucherRefusal::WrongStatus(self.status))
            }
        }
    }

    /// Stops purchases, joins and promotions for now.
    pub fn pause(&mut self) -> Result<Transition, VoucherRefusal> {
        match self.status {
            SaleStatus::Published => Ok(self.enter(SaleStatus::Paused)),
            SaleStatus::Paused => Ok(Transition::AlreadyApplied),
            SaleStatus::Draft | SaleStatus::Closed => Err(VoucherRefusal::WrongStatus(self.status)),
        }
    }

    /// Goes on after a pause.
    pub fn resume(&mut self) -> Result<Transition, VoucherRefusal> {
        match self.status {
            SaleStatus::Paused => Ok(self.enter(SaleStatus::Published)),
            SaleStatus::Published => Ok(Transition::AlreadyApplied),
            SaleStatus::Draft | SaleStatus::Closed => Err(VoucherRefusal::WrongStatus(self.status)),
        }
    }

    /// Ends the sale for good.
    pub fn close(&mut self) -> Result<Transition, VoucherRefusal> {
        match self.status {
            SaleStatus::Published | SaleStatus::Paused => Ok(self.enter(SaleStatus::Closed)),
            SaleStatus::Closed => Ok(Transition::AlreadyApplied),
            SaleStatus::Draft => Err(VoucherRefusal::WrongStatus(self.status)),
        }
    }

    fn enter(&mut self, status: SaleStatus) -> Transition {
        self.status = status;
        Transition::Applied
    }

    /// Changes settings. After publishing, what buyers were promised is frozen.
    pub fn amend(&mut self, change: &Amendment) -> Result<Transition, VoucherRefusal> {
        match self.status {
            SaleStatus::Closed => return Err(VoucherRefusal::WrongStatus(self.status)),
            SaleStatus::Published | SaleStatus::Paused => change.check_unfrozen()?,
            SaleStatus::Draft => {}
        }
        let mut amended = self.clone();
        amended.overwrite(change);
        if amended == *self {
            return Ok(Transition::AlreadyApplied);
        }
        // Of a sale, adjustments may have taken all units out, and no amendment says otherwise.
        let is_draft = self.status == SaleStatus::Draft;
        let total_units = is_draft.then_some(amended.total_units);
        amended.terms.check_with(total_units)?;
        *self = amended;
        Ok(Transition::Applied)
    }

    fn overwrite(&mut self, change: &Amendment) {
        fn set<T: Clone>(field: &mut T, value: Option<&T>) {
            if let Some(value) = value {
                field.clone_from(value);
            }
        }
        let terms = &mut self.terms;
        set(&mut terms.title, change.title.as_ref());
        if let Some(text) = &change.description {
            terms.description = Some(text.clone()).filter(|text| !text.is_empty());
        }
        set(
            &mut terms.face_value.minor,
            change.face_value_minor.as_ref(),
        );
        set(&mut terms.price.minor, change.price_minor.as_ref());
        set(&mut terms.per_buyer_limit, change.per_buyer_limit.as_ref());
        set(&mut terms.window.opens_at, change.opens_at.as_ref());
        set(&mut terms.window.closes_at, change.closes_at.as_ref());
        set(&mut terms.payment_window, change.payment_window.as_ref());
        set(
            &mut terms.waitlist_capacity,
            change.waitlist_capacity.as_ref(),
        );
        if let Some(total) = change.total_units {
            self.total_units = total;
            self.stock_units = total;
        }
    }
}

impl Amendment {
    /// Whether it makes sense at this time: a sale is ended by closing it, not by moving its end
    /// into the past.
    pub fn check_at(&self, now: Timestamp) -> Result<(), VoucherRefusal> {
        if self.closes_at.is_some_and(|closes_at| closes_at <= now) {
            return Err(VoucherRefusal::Invalid(vec![Invalid {
                field: "closes_at",
                rule: "in the future; to end a sale now, close it",
            }]));
        }
        Ok(())
    }

    fn check_unfrozen(&self) -> Result<(), VoucherRefusal> {
        let frozen: Vec<&'static str> = [
            (self.face_value_minor.is_some(), "face_value_minor"),
            (self.price_minor.is_some(), "price_minor"),
            (self.total_units.is_some(), "total_units"),
            (self.per_buyer_limit.is_some(), "per_buyer_limit"),
            (self.opens_at.is_some(), "opens_at"),
            (self.payment_window.is_some(), "payment_window_s"),
        ]
        .into_iter()
        .filter_map(|(touched, field)| touched.then_some(field))
        .collect();
        if frozen.is_empty() {
            Ok(())
        } else {
            Err(VoucherRefusal::Frozen(frozen))
        }
    }
}
