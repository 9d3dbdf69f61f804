//! What is known of one voucher that is sold out.

use std::time::Duration;

use seckill_application::ports::HoldersPage;
use seckill_domain::{BuyerId, GateVersion};

use super::SoldOutSettings;

/// From the first rejection until anything else is heard.
pub(super) struct Knowledge {
    /// The gate's, at every rejection.
    pub(super) version: GateVersion,
    /// Tells this from what was known of the same voucher before.
    pub(super) life: u64,
    rejections: u32,
    /// When the attempt was begun that was the last to be rejected.
    heard: Duration,
    stage: Stage,
    /// Whose attempt is at the gate to see whether anything has changed.
    probe: Option<BuyerId>,
}

enum Stage {
    /// Who holds units is not known yet, or in part.
    Reading {
        holders: Vec<BuyerId>,
        cursor: u64,
        under_way: bool,
    },
    /// It is known, sorted, if nothing has changed since it was begun to be read. A rejection of
    /// an attempt that was begun after that time says so.
    Read { holders: Vec<BuyerId>, at: Duration },
    /// As it was read, so it is.
    Certain { holders: Vec<BuyerId> },
    /// Too many to be kept in mind.
    TooMany,
}

/// What is to be said to an attempt.
pub(super) enum Said {
    /// Sold out, as at this version.
    SoldOut(GateVersion),
    /// The gate has to say; and this buyer's attempt is the one that looks for everybody.
    AskFor(BuyerId),
    /// The gate has to say.
    Nothing,
}

/// A page of holders to read.
pub(super) struct Turn {
    pub(super) life: u64,
    pub(super) cursor: u64,
}

impl Knowledge {
    pub(super) fn new(version: GateVersion, heard: Duration, life: u64) -> Self {
        Self {
            version,
            life,
            rejections: 0,
            heard,
            stage: Stage::Reading {
                holders: Vec::new(),
                cursor: 0,
                under_way: false,
            },
            probe: None,
        }
    }

    /// Whether the gate's last word still counts.
    pub(super) fn is_fresh(&self, now: Duration, settings: &SoldOutSettings) -> bool {
        now.saturating_sub(self.heard) <= settings.trusted()
    }

    pub(super) fn say(
        &mut self,
        buyer: BuyerId,
        now: Duration,
        settings: &SoldOutSettings,
    ) -> Said {
        let Stage::Certain { holders } = &self.stage else {
            return Said::Nothing;
        };
        if !self.is_fresh(now, settings)
            || self.probe == Some(buyer)
            || holders.binary_search(&buyer).is_ok()
        {
            return Said::Nothing;
        }
        if self.probe.is_none() && now.saturating_sub(self.heard) >= settings.recheck {
            self.probe = Some(buyer);
            return Said::AskFor(buyer);
        }
        Said::SoldOut(self.version)
    }

    /// The gate has rejected an attempt that was begun then.
    pub(super) fn rejected(&mut self, begun: Duration, settings: &SoldOutSettings) -> Option<Turn> {
        self.rejections = self.rejections.saturating_add(1);
        self.heard = self.heard.max(begun);
        match &mut self.stage {
            Stage::Reading {
                under_way, cursor, ..
            } if !*under_way && self.rejections >= settings.rejections_min => {
                *under_way = true;
                Some(Turn {
                    life: self.life,
                    cursor: *cursor,
                })
            }
            Stage::Read { holders, at } if begun >= *at => {
                let holders = std::mem::take(holders);
                self.stage = Stage::Certain { holders };
                None
            }
            _ => None,
        }
    }

    /// A page has come.
    pub(super) fn read(&mut self, page: &HoldersPage, now: Duration, settings: &SoldOutSettings) {
        let Stage::Reading {
            holders,
            cursor,
            under_way,
        } = &mut self.stage
        else {
            return;
        };
        holders.extend(page.claims.iter().map(|claim| claim.buyer));
        *under_way = false;
        if holders.len() > settings.holders_max {
            self.stage = Stage::TooMany;
        } else if let Some(next) = page.next {
            *cursor = next;
        } else {
            let mut holders = std::mem::take(holders);
            holders.sort_unstable();
            holders.dedup();
            self.stage = Stage::Read { holders, at: now };
        }
    }

    /// The attempt of this buyer has ended.
    pub(super) fn probed(&mut self, buyer: BuyerId) {
        if self.probe == Some(buyer) {
            self.probe = None;
        }
    }
}
