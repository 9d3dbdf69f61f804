//! Signatures of the payment provider's notifications.

use std::fmt;
use std::time::Duration;

use hmac::digest::InvalidLength;
use hmac::{Hmac, KeyInit as _, Mac as _};
use seckill_domain::Timestamp;
use sha2::Sha256;

use super::BadKey;

/// The secret that the service shares with its payment provider.
///
/// A signature is HMAC-SHA256 over the timestamp as it was sent (seconds since 1970, in decimal
/// digits), a full stop, and the body byte by byte; written as 64 hexadecimal digits.
#[derive(Clone)]
pub struct NoticeKey(Hmac<Sha256>);

/// Fewest bytes of a secret.
const SECRET_BYTES_MIN: usize = 32;
const NOT_SECONDS: &str = "the timestamp is a number of seconds since 1970, in digits";
/// Bytes of a signature.
const SIGNATURE_BYTES: usize = 32;

impl NoticeKey {
    /// Takes a secret of at least 32 bytes.
    pub fn new(secret: &[u8]) -> Result<Self, BadKey> {
        if secret.len() < SECRET_BYTES_MIN {
            return Err(BadKey::ShortSecret);
        }
        let keyed = Hmac::new_from_slice(secret);
        keyed.map(Self).map_err(|InvalidLength| BadKey::ShortSecret)
    }

    /// The signature of a body, as the provider makes it.
    pub fn sign(&self, timestamp_s: i64, body: &[u8]) -> String {
        self.signature(&timestamp_s.to_string(), body)
    }

    fn signature(&self, timestamp: &str, body: &[u8]) -> String {
        use fmt::Write as _;

        let signed = self.over(timestamp, body);
        let mut text = String::with_capacity(2 * SIGNATURE_BYTES);
        for byte in signed.finalize().into_bytes() {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    /// Whether a body is signed, and was a moment ago. Takes as long for a signature that is nearly
    /// right as for one that is not right at all.
    pub(crate) fn verify(
        &self,
        timestamp: &str,
        signature: &str,
        body: &[u8],
        now: Timestamp,
        tolerance: Duration,
    ) -> Result<(), &'static str> {
        let signature = unhex(signature).ok_or("the signature is 64 hexadecimal digits")?;
        self.over(timestamp, body)
            .verify_slice(&signature)
            .map_err(|_| "the signature does not fit the timestamp and the body")?;
        // Only now is the timestamp the provider's.
        let digits = timestamp.bytes().all(|byte| byte.is_ascii_digit());
        let sent_ms = timestamp
            .parse::<i64>()
            .ok()
            .filter(|_| digits)
            .and_then(|seconds| seconds.checked_mul(1_000))
            .ok_or(NOT_SECONDS)?;
        let apart_ms = now.as_millis().abs_diff(sent_ms);
        if u128::from(apart_ms) > tolerance.as_millis() {
            return Err("the timestamp is too far from the time here");
        }
        Ok(())
    }

    fn over(&self, timestamp: &str, body: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(timestamp.as_bytes());
        mac.update(b".");
        mac.update(body);
        mac
    }
}

impl fmt::Debug for NoticeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NoticeKey(secret)")
    }
}

fn unhex(text: &str) -> Option<[u8; SIGNATURE_BYTES]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * SIGNATURE_BYTES {
        return None;
    }
    let mut bytes = [0; SIGNATURE_BYTES];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"a secret of more than thirty-two bytes, for tests";
    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
    const TOLERANCE: Duration = Duration::from_mins(5);

    fn verify(timestamp: &str, signature: &str, body: &[u8]) -> Result<(), &'static str> {
        let key = NoticeKey::new(SECRET).unwrap();
        key.verify(timestamp, signature, body, NOW, TOLERANCE)
    }

    #[test]
    fn a_known_signature_is_made_and_accepted() {
        // printf '1700000000.{}' | openssl dgst -sha256 -hmac "$secret"
        let known = "87f28fd24027b3e75bd16672fdb613b52ebdf533fd7fc05f40636babd9133add";
        let key = NoticeKey::new(SECRET).unwrap();
        assert_eq!(key.sign(1_700_000_000, b"{}"), known);
        assert_eq!(verify("1700000000", known, b"{}"), Ok(()));
        assert_eq!(verify("1700000000", &known.to_uppercase(), b"{}"), Ok(()));
    }

    #[test]
    fn what_was_changed_or_is_not_of_now_is_refused() {
        let key = NoticeKey::new(SECRET).unwrap();
        let good = key.sign(1_700_000_000, b"{}");
        assert!(verify("1700000000", &good, b"{} ").is_err());
        assert!(verify("1700000001", &good, b"{}").is_err());
        for bad in [
            "",
            &good[1..],
            &format!("{good}00"),
            &good.replace(&good[..1], "x"),
        ] {
            assert!(verify("1700000000", bad, b"{}").is_err(), "{bad}");
        }
        for (seconds, fits) in [(-300, true), (-301, false), (300, true), (301, false)] {
            let at = 1_700_000_000 + seconds;
            let signed = key.sign(at, b"{}");
            assert_eq!(
                verify(&at.to_string(), &signed, b"{}").is_ok(),
                fits,
                "{seconds}"
            );
        }
        for odd in ["", "+1700000000", "1700000000.0", " 1700000000"] {
            let said = verify(odd, &key.signature(odd, b"{}"), b"{}");
            assert_eq!(said, Err(NOT_SECONDS), "{odd:?}");
        }
        let other = NoticeKey::new(&[7; 32]).unwrap().sign(1_700_000_000, b"{}");
        assert!(verify("1700000000", &other, b"{}").is_err());
    }

    #[test]
    fn a_secret_is_long_and_not_shown() {
        assert_eq!(NoticeKey::new(&[7; 31]).err(), Some(BadKey::ShortSecret));
        let shown = format!("{:?}", NoticeKey::new(SECRET).unwrap());
        assert!(!shown.contains("thirty"), "{shown}");
    }
}
