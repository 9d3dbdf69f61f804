//! Tokens that were verified before.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::claims::Grant;

/// Verified tokens, by their bytes: no two tokens share an entry, and a token that was never
/// verified cannot get one, so forged tokens push nobody out.
pub(super) struct VerifiedTokens {
    kept: Cache<Box<[u8]>, Grant, ByLength>,
    /// Where a token is kept from the second time on.
    once: Option<SeenOnce>,
}

/// Memory for the tokens, in bytes.
const BYTES_MAX: u64 = 32 * 1_024 * 1_024;
/// What to make room for at first.
const TOKENS_EXPECTED: usize = 100_000;
/// What an entry takes beside the token itself, in bytes.
const ENTRY_BYTES: u64 = 96;

#[derive(Clone)]
struct ByLength;

impl Weighter<Box<[u8]>, Grant> for ByLength {
    fn weight(&self, token: &Box<[u8]>, _grant: &Grant) -> u64 {
        token.len() as u64 + ENTRY_BYTES
    }
}

impl VerifiedTokens {
    /// Keeps every token.
    pub(super) fn from_the_first_time() -> Self {
        Self {
            kept: Cache::with_weighter(TOKENS_EXPECTED, BYTES_MAX, ByLength),
            once: None,
        }
    }

    /// Keeps those that come again: a crowd that asks once pushes nobody out then, and it is not
    /// made room for, which costs two thirds of what it costs to verify a shared secret.
    pub(super) fn from_the_second_time() -> Self {
        Self {
            once: Some(SeenOnce::new()),
            ..Self::from_the_first_time()
        }
    }

    pub(super) fn find(&self, token: &str) -> Option<Grant> {
        self.kept.get(token.as_bytes())
    }

    /// Keeps a token that was just verified, or takes a note of it.
    pub(super) fn keep(&self, token: &str, grant: Grant) {
        let token_is_due = |once: &SeenOnce| once.again(token.as_bytes());
        if self.once.as_ref().is_none_or(token_is_due) {
            self.kept.insert(token.as_bytes().into(), grant);
        }
    }

    pub(super) fn forget(&self, token: &str) {
        self.kept.remove(token.as_bytes());
    }
}

/// The tokens that were seen last, as far as they did not fall into the same slot. Two tokens in
/// four billion are taken for the same one, and then one of them is kept a little early.
struct SeenOnce {
    marks: Box<[AtomicU32]>,
    state: RandomState,
}

/// Half a mebibyte: enough for the tokens of some seconds.
const SLOTS: usize = 1 << 17;
/// Where a token ends is its signature, no two of which are alike.
const TELLING: usize = 32;

impl SeenOnce {
    fn new() -> Self {
        Self {
            marks: (0..SLOTS).map(|_| AtomicU32::default()).collect(),
            state: RandomState::new(),
        }
    }

    /// Whether this token was seen, not long ago. It has been from now on.
    fn again(&self, token: &[u8]) -> bool {
        let end = &token[token.len().saturating_sub(TELLING)..];
        let hash = self.state.hash_one(end);
        let mark = u32::try_from(hash >> u32::BITS).unwrap_or_default();
        let slot = usize::try_from(hash % SLOTS as u64).unwrap_or_default();
        let Some(seen) = self.marks.get(slot) else {
            return false;
        };
        let again = seen.load(Ordering::Relaxed) == mark;
        if !again {
            seen.store(mark, Ordering::Relaxed);
        }
        again
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::claims::Claims;

    fn grant() -> Grant {
        let claims = serde_json::from_str::<Claims>(r#"{"sub": "7", "exp": 2000000000}"#).unwrap();
        Grant::of(&claims).unwrap()
    }

    /// A token's end, as different as signatures are.
    fn token(number: u64) -> String {
        format!(
            "header.payload.{:032}",
            number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        )
    }

    #[test]
    fn a_token_is_kept_from_the_first_time_on_or_the_second() {
        let kinds = [
            (VerifiedTokens::from_the_first_time(), Some(grant())),
            (VerifiedTokens::from_the_second_time(), None),
        ];
        for (tokens, once_kept) in kinds {
            for found in [None, once_kept, Some(grant())] {
                assert_eq!(tokens.find("a.b.c"), found);
                tokens.keep("a.b.c", grant());
            }
            tokens.forget("a.b.c");
            assert_eq!(tokens.find("a.b.c"), None);
        }
    }

    #[test]
    fn a_crowd_that_asks_once_takes_no_room() {
        let tokens = VerifiedTokens::from_the_second_time();
        for number in 0..300_000 {
            tokens.keep(&token(number), grant());
        }
        assert!(tokens.kept.len() < 30, "{}", tokens.kept.len());
        for number in 300_000..301_000 {
            tokens.keep(&token(number), grant());
            tokens.keep(&token(number), grant());
        }
        let found = (300_000..301_000).filter(|it| tokens.find(&token(*it)) == Some(grant()));
        assert_eq!(found.count(), 1_000);
    }
}
