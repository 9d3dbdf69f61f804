//! A buyer's own orders.

mod cancel;
mod events;
mod pay;
mod read;
mod story;
mod view;

use utoipa_axum::router::OpenApiRouter;

use crate::context::Ctx;

pub(crate) use view::OrderBody;

pub(crate) fn routes() -> OpenApiRouter<Ctx> {
    OpenApiRouter::default()
        .merge(read::routes())
        .merge(pay::routes())
        .merge(cancel::routes())
        .merge(events::routes())
}
