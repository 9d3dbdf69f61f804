//! Who is calling.

mod claims;
mod notices;
mod verified;
mod verifier;

use seckill_domain::BuyerId;

pub use notices::NoticeKey;
pub use verifier::{BadKey, PublicKeyKind, TokenVerifier};

/// What a caller may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Buys.
    Buyer,
    /// Runs sales. May buy as well, and is not limited in rate.
    Admin,
}

/// A caller whose token was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// Who it is: the token's `sub`.
    pub id: BuyerId,
    /// What he may do.
    pub role: Role,
}
