//! A buyer's own orders.

mod cancel;
mod pay;
mod read;
mod view;

use utoipa_axum::router::OpenApiRouter;

use crate::context::Ctx;

pub(crate) fn routes() -> OpenApiRouter<Ctx> {
    OpenApiRouter::default()
        .merge(read::routes())
        .merge(pay::routes())
        .merge(cancel::routes())
}
