//! `seckill token`: what an identity provider would issue.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{ValueEnum, value_parser};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use seckill_application::ports::Clock as _;
use seckill_domain::Timestamp;
use serde::Serialize;

use crate::cli::print;
use crate::clock::SystemClock;
use crate::config::{Auth, AuthArgs, BadSetting, UrlArgs};
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct TokenArgs {
    /// Whose token: a user's number
    #[arg(long, value_name = "ID", value_parser = value_parser!(u64).range(1..))]
    user: u64,
    /// What the user may do
    #[arg(long, value_enum, default_value_t)]
    role: TokenRole,
    /// How long the token holds, in seconds
    #[arg(long, value_name = "S", default_value = "3600", value_parser = value_parser!(u64).range(1..=315_360_000))]
    ttl: u64,
    #[command(flatten)]
    auth: AuthArgs,
    #[command(flatten)]
    urls: UrlArgs,
}

/// What the bearer of a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TokenRole {
    /// Buy
    #[default]
    Buyer,
    /// Everything
    Admin,
}

#[derive(Serialize)]
struct Claims {
    sub: String,
    role: TokenRole,
    iat: i64,
    exp: i64,
}

pub(super) fn run(args: &TokenArgs) -> Result<ExitCode, Failure> {
    let auth = Auth::check(&args.auth, args.urls.are_in_memory()?)?;
    auth.verifier()?;
    let Some(secret) = auth.secret() else {
        return Err(Failure::Setting(BadSetting {
            setting: "SECKILL_AUTH_PUBLIC_KEY",
            problem: "a public key only verifies tokens; whoever has the private key issues them"
                .to_owned(),
        }));
    };
    let ttl = Duration::from_secs(args.ttl);
    let now = SystemClock::new().now();
    print(&issue(secret, args.user, args.role, now, ttl)?);
    Ok(ExitCode::SUCCESS)
}

/// A token that holds from `now` for `ttl`.
pub(crate) fn issue(
    secret: &str,
    user: u64,
    role: TokenRole,
    now: Timestamp,
    ttl: Duration,
) -> anyhow::Result<String> {
    let claims = Claims {
        sub: user.to_string(),
        role,
        iat: now.as_millis() / 1_000,
        exp: now.plus(ttl).as_millis() / 1_000,
    };
    let key = EncodingKey::from_secret(secret.as_bytes()).context("the secret cannot sign")?;
    encode(&Header::new(Algorithm::HS256), &claims, &key).context("no token could be signed")
}
