//! Pages for people: Swagger UI, whose assets are part of the binary, and the list of problems.

mod assets;

use std::sync::Arc;

use axum::Router;
use axum::extract::Path;
use axum::http::HeaderMap;
use axum::response::{Html, Redirect, Response};
use axum::routing::get;
use utoipa_swagger_ui::Config;

use crate::context::Ctx;
use crate::openapi;
use crate::problem::Problem;
use assets::Assets;

pub(crate) fn pages() -> Router<Ctx> {
    let config = Config::from("/openapi.json")
        .try_it_out_enabled(true)
        .persist_authorization(true)
        .display_request_duration(true)
        .display_operation_id(true);
    let assets = Arc::new(Assets::new(config));
    let start = assets.clone();
    let problems = openapi::problem_page();
    Router::new()
        .route(
            "/swagger-ui",
            get(|| async { Redirect::to("/swagger-ui/") }),
        )
        .route(
            "/swagger-ui/",
            get(move |headers: HeaderMap| async move { asset(&start, "index.html", &headers) }),
        )
        .route(
            "/swagger-ui/{*path}",
            get(
                move |Path(path): Path<String>, headers: HeaderMap| async move {
                    asset(&assets, &path, &headers)
                },
            ),
        )
        .route(
            "/problems",
            get(move || {
                let page = problems.clone();
                async move { Html(page) }
            }),
        )
}

fn asset(assets: &Assets, path: &str, headers: &HeaderMap) -> Result<Response, Problem> {
    let asset = assets.get(path).ok_or(Problem::RouteNotFound)?;
    Ok(asset.answer(headers))
}
