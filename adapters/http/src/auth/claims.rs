//! What a token says.

use seckill_domain::{BuyerId, Timestamp};
use serde::Deserialize;

use super::{Caller, Role};

/// The claims that matter here; others are ignored.
#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    sub: String,
    /// Seconds since 1970; a number, possibly with a fraction. A string is refused.
    exp: f64,
    #[serde(default)]
    nbf: Option<f64>,
    #[serde(default)]
    role: RoleClaim,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RoleClaim {
    #[default]
    Buyer,
    Admin,
}

/// A token that was verified, and while when it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) caller: Caller,
    /// First instant at which it does not hold any more, leeway included.
    until: Timestamp,
    /// First instant at which it holds, leeway included.
    from: Timestamp,
}

/// How far the clocks of issuer and service may be apart.
const LEEWAY_S: f64 = 5.0;

impl Grant {
    /// What the claims grant; `None` if `sub` is not the canonical form of an id.
    pub(super) fn of(claims: &Claims) -> Option<Self> {
        Some(Self {
            caller: Caller {
                id: claims.sub.parse::<BuyerId>().ok()?,
                role: match claims.role {
                    RoleClaim::Buyer => Role::Buyer,
                    RoleClaim::Admin => Role::Admin,
                },
            },
            until: seconds(claims.exp + LEEWAY_S),
            from: seconds(claims.nbf.map_or(0.0, |nbf| nbf - LEEWAY_S)),
        })
    }

    pub(super) fn holds_at(&self, now: Timestamp) -> bool {
        self.from <= now && now < self.until
    }

    pub(super) fn is_over_at(&self, now: Timestamp) -> bool {
        self.until <= now
    }
}

fn seconds(since_1970: f64) -> Timestamp {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a cast from a float saturates, which is what a time beyond all times should do"
    )]
    Timestamp::from_millis((since_1970 * 1_000.0) as i64)
}
