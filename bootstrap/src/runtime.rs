//! The one place that decides how many threads run the tasks.

use std::future::Future;
use std::io;

/// Runs `main` to its end on a runtime with one thread per core.
pub(crate) fn run<T>(main: impl Future<Output = T>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("seckill")
        .build()?;
    Ok(runtime.block_on(main))
}
