//! Verification of bearer tokens.

use std::fmt;

use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use seckill_domain::Timestamp;

use super::Caller;
use super::claims::{Claims, Grant};
use super::verified::VerifiedTokens;

/// A key that cannot verify tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadKey {
    /// The secret has fewer than 32 bytes.
    ShortSecret,
    /// The text is not a public key of the kind, as PEM.
    NotPublicKey(PublicKeyKind),
}

impl fmt::Display for BadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ShortSecret => f.write_str("the secret must have at least 32 bytes"),
            Self::NotPublicKey(kind) => write!(f, "must be a public key for {kind}, as PEM"),
        }
    }
}

impl std::error::Error for BadKey {}

/// The algorithm of a public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublicKeyKind {
    /// RSA with SHA-256 (PKCS #1 v1.5).
    Rs256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// Ed25519.
    EdDsa,
}

impl fmt::Display for PublicKeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
        })
    }
}

/// Verifies bearer tokens with one key and one algorithm. The algorithm is the key's, whatever a
/// token says about itself. `exp` and `sub` are required, `sub` is a user's id in canonical decimal
/// form, `role` is `buyer` (the default) or `admin`. `aud` and `iss` are only looked at where a
/// value was set.
pub struct TokenVerifier {
    key: DecodingKey,
    rules: Validation,
    verified: VerifiedTokens,
}

/// Longest token looked at, in bytes.
const TOKEN_BYTES_MAX: usize = 4_096;
const SECRET_BYTES_MIN: usize = 32;

impl TokenVerifier {
    /// Verifies HS256 tokens with a shared secret of at least 32 bytes.
    pub fn hs256(secret: &[u8]) -> Result<Self, BadKey> {
        if secret.len() < SECRET_BYTES_MIN {
            return Err(BadKey::ShortSecret);
        }
        let key = DecodingKey::from_secret(secret).map_err(|_| BadKey::ShortSecret)?;
        let verified = VerifiedTokens::from_the_second_time();
        Ok(Self::new(key, Algorithm::HS256, verified))
    }

    /// Verifies tokens with an issuer's public key, as PEM.
    pub fn public_key(kind: PublicKeyKind, pem: &str) -> Result<Self, BadKey> {
        // A private key would do for verifying, and has no business here.
        if pem.contains("PRIVATE") {
            return Err(BadKey::NotPublicKey(kind));
        }
        let pem = pem.as_bytes();
        let (key, algorithm) = match kind {
            PublicKeyKind::Rs256 => (DecodingKey::from_rsa_pem(pem), Algorithm::RS256),
            PublicKeyKind::Es256 => (DecodingKey::from_ec_pem(pem), Algorithm::ES256),
            PublicKeyKind::EdDsa => (DecodingKey::from_ed_pem(pem), Algorithm::EdDSA),
        };
        let key = key.map_err(|_| BadKey::NotPublicKey(kind))?;
        // Such a signature costs tens of times as much to verify as a place among the kept.
        let verified = VerifiedTokens::from_the_first_time();
        Ok(Self::new(key, algorithm, verified))
    }

    fn new(key: DecodingKey, algorithm: Algorithm, verified: VerifiedTokens) -> Self {
        let mut rules = Validation::new(algorithm);
        // Times are judged by `Grant::holds_at`, on the process's clock, for tokens from the cache
        // and others alike. That both claims are there is a matter of `Claims`.
        rules.validate_exp = false;
        rules.validate_nbf = false;
        rules.validate_aud = false;
        Self {
            key,
            rules,
            verified,
        }
    }

    /// Only takes tokens that are meant for this audience.
    #[must_use]
    pub fn for_audience(mut self, audience: &str) -> Self {
        self.rules.validate_aud = true;
        self.rules.set_audience(&[audience]);
        self.rules.required_spec_claims.insert("aud".to_owned());
        self
    }

    /// Only takes tokens of this issuer.
    #[must_use]
    pub fn from_issuer(mut self, issuer: &str) -> Self {
        self.rules.set_issuer(&[issuer]);
        self.rules.required_spec_claims.insert("iss".to_owned());
        self
    }

    /// The caller of a token, or what is wrong with it.
    pub(crate) fn verify(&self, token: &str, now: Timestamp) -> Result<Caller, &'static str> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err("the token is too long");
        }
        let known = self.verified.find(token);
        let grant = match known {
            Some(grant) => grant,
            None => self.judge(token)?,
        };
        if grant.is_over_at(now) {
            self.verified.forget(token);
            return Err("the token has expired");
        }
        if known.is_none() {
            self.verified.keep(token, grant);
        }
        if !grant.holds_at(now) {
            return Err("the token does not hold yet");
        }
        Ok(grant.caller)
    }

    fn judge(&self, token: &str) -> Result<Grant, &'static str> {
        let decoded = jsonwebtoken::decode::<Claims>(token, &self.key, &self.rules)
            .map_err(|_| "the token is not valid here")?;
        // Whatever the token declares critical, nothing here understands it.
        if decoded.header.crit.is_some() {
            return Err("the token is not valid here");
        }
        Grant::of(&decoded.claims).ok_or("the token's subject is not a user id")
    }
}
