//! Values as clients read and write them.

mod cursor;
mod id;
mod instant;
mod status;

pub(crate) use cursor::{Cursor, PageQuery};
pub(crate) use id::Id;
pub(crate) use instant::Instant;
pub(crate) use status::{OrderStatusWord, SaleStatusWord, reject_reason};
