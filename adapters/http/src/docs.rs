//! Pages for people: Swagger UI, whose assets are part of the binary, and the list of problems.

use axum::Router;
use axum::response::Html;
use axum::routing::get;
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::context::Ctx;
use crate::openapi;

pub(crate) fn pages() -> Router<Ctx> {
    let config = Config::from("/openapi.json")
        .try_it_out_enabled(true)
        .persist_authorization(true)
        .display_request_duration(true)
        .display_operation_id(true);
    let problems = openapi::problem_page();
    Router::from(SwaggerUi::new("/swagger-ui").config(config)).route(
        "/problems",
        get(move || {
            let page = problems.clone();
            async move { Html(page) }
        }),
    )
}
