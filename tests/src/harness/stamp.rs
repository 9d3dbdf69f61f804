//! One scenario, many tests: the same steps on each kind of stores.

/// Stamps scenarios into tests, in a module that says on which stores they run.
///
/// The expression is a future of the stores, `Option<Site>`; a scenario that gets none does not run
/// (see [`stack`](crate::stack)).
#[macro_export]
macro_rules! stamp {
    ($stores:ident, $site:expr; $($scenario:ident),+ $(,)?) => {
        mod $stores {
            $(#[tokio::test]
            async fn $scenario() {
                if let Some(site) = $site.await {
                    super::$scenario(site).await;
                }
            })+
        }
    };
}
