//! A Redis and a MySQL server of the kind that the tests run against, for something else to run
//! against: prints the settings that name them, and keeps them until its input ends.

use std::process::ExitCode;

use seckill_tests::stack;

#[tokio::main]
async fn main() -> ExitCode {
    let Some(servers) = stack::shared().await else {
        return ExitCode::FAILURE;
    };
    let database = servers.fresh_database().await;
    println!("SECKILL_GATE={}", servers.redis_url());
    println!("SECKILL_LEDGER={}", database.url());
    println!("SECKILL_NAMESPACE={}", servers.fresh_namespace());
    // Nothing else is to be done on this thread until then.
    drop(std::io::read_to_string(std::io::stdin()));
    ExitCode::SUCCESS
}
