//! `seckill migrate`.

use std::process::ExitCode;
use std::sync::Arc;

use seckill_application::ports::Clock;

use crate::adapters::connect_ledger;
use crate::cli::print;
use crate::clock::SystemClock;
use crate::config::{BadSetting, LogArgs, StoreArgs, Stores};
use crate::failure::Failure;
use crate::shutdown::Stop;
use crate::{runtime, telemetry};

#[derive(Debug, clap::Args)]
pub(crate) struct MigrateArgs {
    #[command(flatten)]
    stores: StoreArgs,
    #[command(flatten)]
    log: LogArgs,
}

pub(super) fn run(args: &MigrateArgs) -> Result<ExitCode, Failure> {
    telemetry::init(&args.log.check()?);
    let Stores::Real(stores) = Stores::check(&args.stores.clone().with_any_gate())? else {
        return Err(Failure::Setting(BadSetting {
            setting: "SECKILL_LEDGER",
            problem: "names the database to migrate: mysql://user:password@host[:port]/database"
                .to_owned(),
        }));
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let migrated = runtime::run(async {
        let ledger = connect_ledger(&stores, true, &clock, &Stop::default()).await?;
        ledger.close().await;
        Ok::<_, Failure>(())
    });
    migrated??;
    print("the schema is up to date");
    Ok(ExitCode::SUCCESS)
}
