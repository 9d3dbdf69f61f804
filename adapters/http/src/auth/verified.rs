//! Tokens that were verified before.

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::claims::Grant;

/// Verified tokens, by their bytes: no two tokens share an entry, and a token that was never
/// verified cannot get one, so forged tokens push nobody out.
pub(super) struct VerifiedTokens(Cache<Box<[u8]>, Grant, ByLength>);

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
    pub(super) fn new() -> Self {
        Self(Cache::with_weighter(TOKENS_EXPECTED, BYTES_MAX, ByLength))
    }

    pub(super) fn find(&self, token: &str) -> Option<Grant> {
        self.0.get(token.as_bytes())
    }

    pub(super) fn keep(&self, token: &str, grant: Grant) {
        self.0.insert(token.as_bytes().into(), grant);
    }

    pub(super) fn forget(&self, token: &str) {
        self.0.remove(token.as_bytes());
    }
}
