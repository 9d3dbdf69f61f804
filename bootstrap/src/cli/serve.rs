//! `seckill serve`.

use std::process::ExitCode;

use crate::cli::{known_variables, print};
use crate::config::{Config, ServeArgs};
use crate::failure::Failure;
use crate::service::Service;
use crate::shutdown::{Stop, on_signals};
use crate::{runtime, telemetry};

pub(super) fn run(args: &ServeArgs) -> Result<ExitCode, Failure> {
    let config = Config::check(args)?;
    telemetry::init(&config.log);
    for variable in unknown_variables() {
        tracing::warn!(variable, "is not a setting; see seckill serve --help");
    }
    runtime::run(serve(&config))?
}

async fn serve(config: &Config) -> Result<ExitCode, Failure> {
    let stop = Stop::default();
    let served = async {
        let service = Service::start(config, stop.clone()).await?;
        if config.auth.is_demonstration() {
            tracing::warn!("tokens are verified with the built-in secret, which everybody knows");
        }
        if let Some(demonstration) = service.demonstration() {
            print(&demonstration.invitation(service.address()));
        }
        service.run().await
    };
    tokio::select! {
        served = served => match served {
            // Told to stop before it had started: that is no failure.
            Ok(()) | Err(Failure::Stopped) => Ok(ExitCode::SUCCESS),
            Err(failure) => {
                tracing::error!(%failure, "not serving");
                Err(failure)
            }
        },
        deaf = on_signals(stop.clone()) => match deaf {
            Ok(never) => match never {},
            Err(error) => Err(error.into()),
        },
    }
}

/// A misspelt setting would be as good as none, without a word.
fn unknown_variables() -> Vec<String> {
    let known = known_variables();
    let ours = |variable: &String| {
        variable.starts_with("SECKILL_") && !variable.starts_with("SECKILL_TEST_")
    };
    std::env::vars_os()
        .filter_map(|(variable, _)| variable.into_string().ok())
        .filter(ours)
        .filter(|variable| !known.contains(variable))
        .collect()
}
