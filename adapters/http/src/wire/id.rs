//! Identifiers as decimal strings, because browsers round 64-bit numbers.

use std::borrow::Cow;

use seckill_domain::{BuyerId, OrderId, VoucherId};
use serde::{Serialize, Serializer};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

/// A 64-bit identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Id(u64);

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

impl From<BuyerId> for Id {
    fn from(id: BuyerId) -> Self {
        Self(id.get())
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

impl PartialSchema for Id {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(SchemaType::Type(Type::String))
            .description(Some("A 64-bit identifier in decimal digits."))
            .pattern(Some("^[1-9][0-9]{0,19}$"))
            .examples(["609848294759202817"])
            .into()
    }
}

impl ToSchema for Id {
    fn name() -> Cow<'static, str> {
        "Id".into()
    }
}
