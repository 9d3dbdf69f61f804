//! Every route, and its description.

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::response::IntoResponse;
use axum::routing::get;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::context::Ctx;
use crate::problem::Problem;
use crate::settings::Surface;
use crate::{admin, docs, health, metrics, openapi, orders, payments, vouchers, waitlist};

/// The routes with their description: one list for both. A new group of endpoints is a line here.
pub(crate) fn routes(surface: Surface) -> (Router<Ctx>, OpenApi) {
    let groups = OpenApiRouter::with_openapi(openapi::preamble());
    let groups = match surface {
        Surface::Operations => groups,
        Surface::Everything => groups
            .merge(vouchers::routes())
            .merge(orders::routes())
            .merge(waitlist::routes())
            .merge(payments::routes())
            .merge(admin::routes()),
    };
    let operations = groups.merge(health::routes()).merge(metrics::routes());
    let (router, mut document) = operations.split_for_parts();
    openapi::complete(&mut document);
    (router, document)
}

/// The routes, the document itself and the pages that show it where the API is served, and the
/// answers for everything else.
pub(crate) fn assemble(routes: Router<Ctx>, document: &OpenApi, surface: Surface) -> Router<Ctx> {
    let routes = match surface {
        Surface::Operations => routes,
        Surface::Everything => with_document(routes, document),
    };
    routes
        .fallback(|| async { Problem::RouteNotFound })
        .method_not_allowed_fallback(|| async { Problem::MethodNotAllowed })
}

fn with_document(routes: Router<Ctx>, document: &OpenApi) -> Router<Ctx> {
    let json = document.to_json().unwrap_or_default();
    let serve_document = move || {
        let json = json.clone();
        async move {
            let json_type = HeaderValue::from_static("application/json");
            ([(header::CONTENT_TYPE, json_type)], json).into_response()
        }
    };
    routes
        .route("/openapi.json", get(serve_document))
        .merge(docs::pages())
}
