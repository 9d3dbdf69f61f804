//! Identifiers as decimal strings, because browsers round 64-bit numbers.

use std::borrow::Cow;

use seckill_domain::{BuyerId, OrderId, VoucherId};
use serde::{Serialize, Serializer};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

/// What the service numbers itself, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Id(u64);

/// A user. Somebody else numbers them, perhaps from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UserId(u64);

impl Id {
    /// The number of something that has no type of its own.
    pub(crate) fn numbered(number: u64) -> Self {
        Self(number)
    }
}

impl From<VoucherId> for Id {
    fn from(id: VoucherId) -> Self {
        Self(id.get())
    }
}

impl From<OrderId> for Id {
    fn from(id: OrderId) -> Self {
        Self(id.get())
    }
}

impl From<BuyerId> for UserId {
    fn from(id: BuyerId) -> Self {
        Self(id.get())
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

impl Serialize for UserId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

fn schema(description: &str, pattern: &str, example: &str) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::String))
        .description(Some(description))
        .pattern(Some(pattern))
        .examples([example])
        .into()
}

impl PartialSchema for Id {
    fn schema() -> RefOr<Schema> {
        schema(
            "A 64-bit identifier in decimal digits.",
            "^[1-9][0-9]{0,19}$",
            "609848294759202817",
        )
    }
}

impl ToSchema for Id {
    fn name() -> Cow<'static, str> {
        "Id".into()
    }
}

impl PartialSchema for UserId {
    fn schema() -> RefOr<Schema> {
        schema(
            "A user's 64-bit identifier in decimal digits, as the token's `sub` has it.",
            "^(0|[1-9][0-9]{0,19})$",
            "42",
        )
    }
}

impl ToSchema for UserId {
    fn name() -> Cow<'static, str> {
        "UserId".into()
    }
}
