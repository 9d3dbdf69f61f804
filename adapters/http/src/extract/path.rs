//! Ids in paths. What is no id names nothing, so it is not found.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use seckill_domain::{OrderId, VoucherId};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use utoipa::IntoParams;

use crate::context::Ctx;
use crate::problem::Problem;
use crate::wire::Id;

/// `{voucher_id}` of a path.
pub(crate) struct VoucherPath(pub(crate) VoucherId);

/// `{order_id}` of a path.
pub(crate) struct OrderPath(pub(crate) OrderId);

/// How the path of a voucher is described.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(
    dead_code,
    reason = "it describes VoucherPath, which is read without it"
)]
pub(crate) struct VoucherParam {
    /// Which voucher.
    #[param(example = "1")]
    voucher_id: Id,
}

/// How the path of an order is described.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "it describes OrderPath, which is read without it")]
pub(crate) struct OrderParam {
    /// Which order.
    #[param(example = "609848294759202817")]
    order_id: Id,
}

/// `{message_id}` of a path: the number of a parked message.
pub(crate) struct MessagePath(pub(crate) u64);

/// How the path of a parked message is described.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(
    dead_code,
    reason = "it describes MessagePath, which is read without it"
)]
pub(crate) struct MessageParam {
    /// Which message.
    #[param(example = "1")]
    message_id: Id,
}

impl FromRequestParts<Ctx> for MessagePath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, ctx: &Ctx) -> Result<Self, Problem> {
        match Path::<Canonical<MessageNumber>>::from_request_parts(parts, ctx).await {
            Ok(Path(Canonical(MessageNumber(number)))) => Ok(Self(number)),
            Err(_) => Err(Problem::ParkedNotFound),
        }
    }
}

/// A number from 1 in its one canonical form.
struct MessageNumber(u64);

impl FromStr for MessageNumber {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let canonical =
            text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0') && text.len() <= 20;
        let number = canonical.then(|| text.parse().ok()).flatten();
        number.map(Self).ok_or(())
    }
}

impl FromRequestParts<Ctx> for VoucherPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, ctx: &Ctx) -> Result<Self, Problem> {
        match Path::<Canonical<VoucherId>>::from_request_parts(parts, ctx).await {
            Ok(Path(Canonical(id))) => Ok(Self(id)),
            Err(_) => Err(Problem::VoucherNotFound),
        }
    }
}

impl FromRequestParts<Ctx> for OrderPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, ctx: &Ctx) -> Result<Self, Problem> {
        match Path::<Canonical<OrderId>>::from_request_parts(parts, ctx).await {
            Ok(Path(Canonical(id))) => Ok(Self(id)),
            Err(_) => Err(Problem::OrderNotFound),
        }
    }
}

/// Parsed where it stands, without a copy of the text.
struct Canonical<T>(T);

impl<'de, T: FromStr> Deserialize<'de> for Canonical<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Text<T>(PhantomData<T>);

        impl<T: FromStr> Visitor<'_> for Text<T> {
            type Value = Canonical<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an id")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                text.parse()
                    .map(Canonical)
                    .map_err(|_| E::custom("not an id"))
            }
        }

        from.deserialize_str(Text(PhantomData))
    }
}
