//! Values as clients read and write them.

mod cursor;
mod id;
mod instant;
mod status;
pub(crate) mod text;

pub(crate) use cursor::{Cursor, PageQuery};
pub(crate) use id::{Id, UserId};
pub(crate) use instant::Instant;
pub(crate) use status::{OrderStatusWord, RefundReasonWord, SaleStatusWord, reject_reason};
