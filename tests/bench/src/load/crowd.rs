//! Who asks: buyers with tokens of their own, and requests without any.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, ensure};
use jsonwebtoken::{EncodingKey, Header, encode};
use serde::Serialize;

/// The secret of every token and every server here.
pub const SECRET: &str = "seckill-bench-secret-seckill-bench-secret-0123456789";
/// Buyers' numbers have ten digits, so that all tokens are of one length.
const FIRST_BUYER: u64 = 1_000_000_001;
const HOLDS: Duration = Duration::from_hours(6);

/// The bytes of many requests.
#[derive(Debug, Clone)]
pub struct Requests {
    head: Vec<u8>,
    /// Tokens of equal length, one behind the other.
    tokens: Vec<u8>,
    stride: usize,
    count: u64,
}

impl Requests {
    /// The same request without a token, again and again.
    pub fn get(path: &str) -> Self {
        Self {
            head: format!("GET {path} HTTP/1.1\r\nhost: bench\r\n").into_bytes(),
            tokens: Vec::new(),
            stride: 0,
            count: u64::MAX,
        }
    }

    /// The same buyers with the same tokens, for another voucher.
    #[must_use]
    pub fn again_for(&self, voucher: &str) -> Self {
        Self {
            head: head_of(&format!("/v1/vouchers/{voucher}/purchases")),
            ..self.clone()
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// One request's bytes, on a kept connection.
    pub fn bytes(&self, number: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(number, true, &mut bytes);
        bytes
    }

    /// Appends a request's bytes.
    pub(super) fn write(&self, number: u64, keep_alive: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.head);
        if self.stride > 0 {
            let at = usize::try_from(number)
                .unwrap_or(usize::MAX)
                .saturating_mul(self.stride);
            out.extend_from_slice(b"authorization: Bearer ");
            out.extend_from_slice(&self.tokens[at..at + self.stride]);
            out.extend_from_slice(b"\r\n");
        }
        if !keep_alive {
            out.extend_from_slice(b"connection: close\r\n");
        }
        out.extend_from_slice(b"\r\n");
    }
}

#[derive(Serialize)]
struct Claims<'a> {
    sub: &'a str,
    role: &'a str,
    iat: u64,
    exp: u64,
}

/// Buyers who have never been seen before.
#[derive(Debug, Clone)]
pub struct Crowd {
    next: u64,
}

impl Default for Crowd {
    fn default() -> Self {
        Self { next: FIRST_BUYER }
    }
}

impl Crowd {
    /// One purchase each by `count` new buyers.
    pub fn purchases(&mut self, voucher: &str, count: usize) -> anyhow::Result<Requests> {
        let buyers = self.next..self.next + count as u64;
        self.next = buyers.end;
        let path = format!("/v1/vouchers/{voucher}/purchases");
        purchases_of(&path, buyers)
    }

    /// The token of one new buyer.
    pub fn token(&mut self) -> anyhow::Result<String> {
        let buyer = self.next;
        self.next += 1;
        let key = EncodingKey::from_secret(SECRET.as_bytes()).context("the secret cannot sign")?;
        signed(&key, buyer, "buyer", seconds_now())
    }
}

/// One purchase each by these buyers.
fn purchases_of(path: &str, buyers: std::ops::Range<u64>) -> anyhow::Result<Requests> {
    let count = buyers.end - buyers.start;
    let (mut tokens, mut stride) = (Vec::new(), 0);
    let key = EncodingKey::from_secret(SECRET.as_bytes()).context("the secret cannot sign")?;
    let now = seconds_now();
    for buyer in buyers {
        let token = signed(&key, buyer, "buyer", now)?;
        if stride == 0 {
            stride = token.len();
            tokens.reserve_exact(stride * usize::try_from(count)?);
        }
        ensure!(token.len() == stride, "tokens of different lengths");
        tokens.extend_from_slice(token.as_bytes());
    }
    Ok(Requests {
        head: head_of(path),
        tokens,
        stride,
        count,
    })
}

fn head_of(path: &str) -> Vec<u8> {
    format!("POST {path} HTTP/1.1\r\nhost: bench\r\ncontent-length: 0\r\n").into_bytes()
}

/// An administrator's token.
pub fn admin_token() -> anyhow::Result<String> {
    let key = EncodingKey::from_secret(SECRET.as_bytes()).context("the secret cannot sign")?;
    signed(&key, 1, "admin", seconds_now())
}

fn signed(key: &EncodingKey, user: u64, role: &str, now: u64) -> anyhow::Result<String> {
    let claims = Claims {
        sub: &user.to_string(),
        role,
        iat: now,
        exp: now + HOLDS.as_secs(),
    };
    encode(&Header::default(), &claims, key).context("no token could be signed")
}

fn seconds_now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}
