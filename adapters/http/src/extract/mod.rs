//! What handlers take from a request. Every refusal is a [`Problem`](crate::problem::Problem).

mod body;
mod caller;
mod idempotency_key;
mod path;
mod query;
mod range;
mod signed;
mod whole;
mod wording;

pub(crate) use body::{Json, LongJson, OptionalJson};
pub(crate) use caller::{Admin, Buyer, Purchaser};
pub(crate) use idempotency_key::{Key, KeyHeader};
pub(crate) use path::{
    MessageParam, MessagePath, OrderParam, OrderPath, VoucherParam, VoucherPath,
};
pub(crate) use query::PageOf;
pub(crate) use signed::{SignatureHeaders, Signed};
pub(crate) use whole::{whole, whole_if_given};
