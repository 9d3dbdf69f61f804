//! The caller, by his token, within his rate.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};

use crate::auth::{Caller, Role};
use crate::context::{Context, Ctx};
use crate::problem::Problem;

/// Anybody with a token.
pub(crate) struct Buyer(pub(crate) Caller);

/// Anybody with a token, at the rate of purchases.
pub(crate) struct Purchaser(pub(crate) Caller);

/// An administrator.
pub(crate) struct Admin;

impl FromRequestParts<Ctx> for Buyer {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, ctx: &Ctx) -> Result<Self, Problem> {
        let caller = authenticate(&parts.headers, ctx)?;
        if caller.role == Role::Buyer {
            ctx.rates.other(caller.id)?;
        }
        Ok(Self(caller))
    }
}

impl FromRequestParts<Ctx> for Purchaser {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, ctx: &Ctx) -> Result<Self, Problem> {
        let caller = authenticate(&parts.headers, ctx)?;
        if caller.role == Role::Buyer {
            ctx.rates.purchase(caller.id)?;
        }
        Ok(Self(caller))
    }
}

impl FromRequestParts<Ctx> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, ctx: &Ctx) -> Result<Self, Problem> {
        let caller = authenticate(&parts.headers, ctx)?;
        match caller.role {
            Role::Admin => Ok(Self),
            Role::Buyer => {
                ctx.rates.other(caller.id)?;
                Err(Problem::Forbidden)
            }
        }
    }
}

fn authenticate(headers: &HeaderMap, ctx: &Context) -> Result<Caller, Problem> {
    let token = bearer(headers).map_err(Problem::Unauthenticated)?;
    ctx.tokens
        .verify(token, ctx.api.clock.now())
        .map_err(Problem::Unauthenticated)
}

/// The token of the one `Authorization` header.
fn bearer(headers: &HeaderMap) -> Result<&str, &'static str> {
    const MISSING: &str = "send the header Authorization: Bearer and a token";
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(MISSING);
    };
    let (scheme, token) = value
        .to_str()
        .ok()
        .and_then(|value| value.split_once(' '))
        .ok_or(MISSING)?;
    if scheme.eq_ignore_ascii_case("bearer") {
        Ok(token.trim_matches(' '))
    } else {
        Err(MISSING)
    }
}
