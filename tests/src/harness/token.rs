//! Bearer tokens, good ones and bad ones.

use std::time::{SystemTime, UNIX_EPOCH};

use jsonwebtoken::{EncodingKey, Header, encode};
use seckill_domain::BuyerId;
use serde::Serialize;

/// The secret of every process under test.
pub(super) const SECRET: &str = "acceptance-secret-acceptance-secret-0123456789";

/// What goes into a token.
#[derive(Debug, Clone)]
pub struct Token {
    sub: String,
    role: &'static str,
    ttl_s: i64,
    secret: String,
}

#[derive(Serialize)]
struct Claims<'a> {
    sub: &'a str,
    role: &'a str,
    iat: i64,
    exp: i64,
}

impl Token {
    /// A buyer's token, good for an hour.
    pub fn of(buyer: BuyerId) -> Self {
        Self {
            sub: buyer.to_string(),
            role: "buyer",
            ttl_s: 3_600,
            secret: SECRET.to_owned(),
        }
    }

    /// An administrator's.
    pub fn admin() -> Self {
        Self {
            role: "admin",
            ..Self::of(BuyerId::new(1))
        }
    }

    /// Good for this long from now; negative for one that has expired.
    #[must_use]
    pub fn for_seconds(mut self, ttl_s: i64) -> Self {
        self.ttl_s = ttl_s;
        self
    }

    /// Signed with another secret.
    #[must_use]
    pub fn signed_with(mut self, secret: &str) -> Self {
        secret.clone_into(&mut self.secret);
        self
    }

    /// For somebody whose id is not what the service expects.
    #[must_use]
    pub fn naming(mut self, sub: &str) -> Self {
        sub.clone_into(&mut self.sub);
        self
    }

    /// The token as it is sent.
    pub fn signed(&self) -> String {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("the clock is past 1970")
            .as_secs();
        let now = i64::try_from(now).expect("this century");
        let claims = Claims {
            sub: &self.sub,
            role: self.role,
            iat: now,
            exp: now + self.ttl_s,
        };
        let key = EncodingKey::from_secret(self.secret.as_bytes()).expect("a secret is not empty");
        encode(&Header::default(), &claims, &key).expect("claims can be signed")
    }

    /// The same claims under a header that asks for no signature at all.
    pub fn unsigned(&self) -> String {
        let signed = self.signed();
        let claims = signed.split('.').nth(1).expect("a token has three parts");
        // {"alg":"none"}
        format!("eyJhbGciOiJub25lIn0.{claims}.")
    }
}

/// A buyer's token as it is sent.
pub fn token(buyer: BuyerId) -> String {
    Token::of(buyer).signed()
}
