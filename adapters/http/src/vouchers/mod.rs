//! What is on sale, and buying it.

mod browse;
mod purchase;
mod view;

use utoipa_axum::router::OpenApiRouter;

use crate::context::Ctx;

pub(crate) use view::VoucherBody;

pub(crate) fn routes() -> OpenApiRouter<Ctx> {
    OpenApiRouter::default()
        .merge(browse::routes())
        .merge(purchase::routes())
}
