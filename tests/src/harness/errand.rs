//! What buyers come for: some only buy, others press twice, pay, give up, or wait for their turn.

use seckill_domain::VoucherId;

use super::exercised::Exercised;

/// What somebody does with an order once he has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Errand {
    /// Nothing: he may pay later.
    Keep,
    /// Asks again under the same key.
    Repeat,
    /// Pays.
    Pay,
    /// Pays, and the provider is the one who says so.
    Transfer,
    /// Gives it up.
    Cancel,
    /// Gives it up, and asks again under the same key, which stands for the order that he gave up.
    CancelAndRepeat,
    /// Gives up his place, if he has to wait; else his order.
    Leave,
}

/// One visit of a buyer.
#[derive(Debug, Clone)]
pub(super) struct Visit {
    pub(super) voucher: VoucherId,
    pub(super) quantity: u32,
    pub(super) key: Option<String>,
    pub(super) errand: Errand,
    /// Whether there is less than people want.
    pub(super) is_scarce: bool,
}

/// What a crowd wants.
#[derive(Debug, Clone, Copy)]
pub struct Demand {
    plenty: VoucherId,
    scarce: Option<VoucherId>,
    busy: bool,
    leavers: bool,
}

/// One after the other where there is plenty: whether under a key, and what for. Whoever pays or gives
/// up needs the database, and is there to be seen, not to be in the way of the others.
const WITH_PLENTY: [(bool, Errand); 16] = [
    (false, Errand::Keep),
    (true, Errand::Repeat),
    (false, Errand::Keep),
    (false, Errand::Pay),
    (true, Errand::Keep),
    (false, Errand::Keep),
    (false, Errand::Cancel),
    (false, Errand::Keep),
    (true, Errand::Repeat),
    (false, Errand::Keep),
    (true, Errand::Transfer),
    (false, Errand::Keep),
    (true, Errand::Keep),
    (false, Errand::Keep),
    (true, Errand::CancelAndRepeat),
    (false, Errand::Keep),
];

/// One after the other where there is little: units, and what for. Most give up what they get, so
/// that those who wait have their turn.
const WITH_LITTLE: [(u32, Errand); 6] = [
    (2, Errand::Cancel),
    (1, Errand::Pay),
    (1, Errand::Leave),
    (3, Errand::Cancel),
    (1, Errand::Repeat),
    (1, Errand::Cancel),
];

impl Demand {
    /// One unit each of a voucher of which there is plenty, and nothing else.
    pub fn of(voucher: VoucherId) -> Self {
        Self {
            plenty: voucher,
            scarce: None,
            busy: false,
            leavers: false,
        }
    }

    /// Some press twice, pay, or give up what they bought.
    #[must_use]
    pub fn of_all_kinds(mut self) -> Self {
        self.busy = true;
        self
    }

    /// Every fourth comes for this one instead, of which there is little, and of which a buyer may
    /// have three; whoever has to wait does.
    #[must_use]
    pub fn and_scarce(mut self, voucher: VoucherId) -> Self {
        self.scarce = Some(voucher);
        self
    }

    /// Some of those who wait do not stay.
    #[must_use]
    pub fn with_leavers(mut self) -> Self {
        self.leavers = true;
        self
    }

    /// Whether some do more than buy.
    pub fn is_of_all_kinds(&self) -> bool {
        self.busy
    }

    /// What they come for.
    pub fn vouchers(&self) -> Vec<VoucherId> {
        [self.plenty].into_iter().chain(self.scarce).collect()
    }

    /// Whether there is little of this one.
    pub fn is_scarce(&self, voucher: VoucherId) -> bool {
        self.scarce == Some(voucher)
    }

    /// Panics if a run has tried anything of what they do fewer than so many times.
    #[track_caller]
    pub fn assert_tried(&self, tried: &Exercised, least: usize) {
        if self.busy {
            tried.assert_lively(least);
        }
        if self.scarce.is_some() {
            tried.assert_contested(least);
        }
    }

    /// What the `number`th to come wants.
    pub(super) fn visit(&self, number: usize) -> Visit {
        let key = || Some(format!("k-{number}"));
        if let Some(voucher) = self.scarce.filter(|_| number % 4 == 3) {
            let (quantity, errand) = WITH_LITTLE[number / 4 % WITH_LITTLE.len()];
            let errand = match errand {
                Errand::Leave if !self.leavers => Errand::Cancel,
                other => other,
            };
            return Visit {
                voucher,
                quantity,
                key: key(),
                errand,
                is_scarce: true,
            };
        }
        let (has_key, errand) = if self.busy {
            WITH_PLENTY[number % WITH_PLENTY.len()]
        } else {
            (false, Errand::Keep)
        };
        Visit {
            key: has_key.then(key).flatten(),
            errand,
            ..self.calm_visit()
        }
    }

    /// What anybody wants while all is to be calm.
    pub(super) fn calm_visit(&self) -> Visit {
        Visit {
            voucher: self.plenty,
            quantity: 1,
            key: None,
            errand: Errand::Keep,
            is_scarce: false,
        }
    }
}
