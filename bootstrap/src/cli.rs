//! The command line.

mod migrate;
mod reconcile;
mod serve;
mod simulate;
pub(crate) mod token;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::config::{Config, ServeArgs};
use crate::failure::Failure;

/// Flash sales of vouchers: nobody oversells, nobody buys twice, nothing is lost.
///
/// Without a command it serves; without settings everything is in memory.
#[derive(Debug, Parser)]
#[command(
    name = "seckill",
    version,
    max_term_width = 100,
    override_usage = "seckill [COMMAND]"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the API and run the workers (the default)
    Serve(Box<ServeArgs>),
    /// Print a bearer token
    Token(token::TokenArgs),
    /// Bring the database's schema up to date
    Migrate(migrate::MigrateArgs),
    /// Send a crowd to a sale, and judge whether every promise was kept
    Simulate(Box<simulate::SimulateArgs>),
    /// Compare the gate with the ledger once, now, and mend what differs
    ///
    /// Ends with 0 if all agrees or was mended, 1 if something differs still, 2 for a bad setting, 3 if
    /// another process is reconciling, 4 if there was no comparison, as when a server is away.
    Reconcile(Box<reconcile::ReconcileArgs>),
    /// Print the OpenAPI document
    Openapi,
}

/// Runs the program with these arguments, the first of which is its name.
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::of(args) {
        Ok(cli) => cli,
        Err(refusal) => {
            // A reader who has gone away needs no words.
            let _ = refusal.print();
            return ExitCode::from(u8::try_from(refusal.exit_code()).unwrap_or(2));
        }
    };
    match cli.run() {
        Ok(code) => code,
        Err(failure) => {
            let _ = writeln!(std::io::stderr(), "error: {failure}");
            failure.exit_code()
        }
    }
}

impl Config {
    /// What `seckill serve` with these arguments would run with, the environment included.
    pub fn from_args<'a>(args: impl IntoIterator<Item = &'a str>) -> Result<Self, Failure> {
        let args = ["seckill", "serve"].into_iter().chain(args);
        let cli = Cli::of(args.map(OsString::from)).map_err(anyhow::Error::from)?;
        match cli.command {
            Command::Serve(args) => Ok(Self::check(&args)?),
            other => Err(anyhow::anyhow!("not a service: {other:?}").into()),
        }
    }
}

impl Cli {
    fn of(args: impl Iterator<Item = OsString>) -> Result<Self, clap::Error> {
        let command = Self::command();
        command
            .clone()
            .try_get_matches_from(with_default_command(args))
            .and_then(|matches| Self::from_arg_matches(&matches))
            .map_err(|refusal| name_the_variable(refusal, &command))
    }

    fn run(self) -> Result<ExitCode, Failure> {
        match self.command {
            Command::Serve(args) => serve::run(&args),
            Command::Token(args) => token::run(&args),
            Command::Migrate(args) => migrate::run(&args),
            Command::Simulate(args) => simulate::run(&args),
            Command::Reconcile(args) => reconcile::run(&args),
            Command::Openapi => {
                print(&seckill_http::openapi_json());
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

/// Writes to standard output; a reader who has gone away is no failure.
fn print(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// `seckill --role api` means `seckill serve --role api`.
fn with_default_command(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<OsString> = args.collect();
    let general = ["-h", "--help", "-V", "--version"];
    let serves = match args.get(1).and_then(|first| first.to_str()) {
        None => args.len() <= 1,
        Some(first) => first.starts_with('-') && !general.contains(&first),
    };
    if serves {
        args.insert(args.len().min(1), OsString::from("serve"));
    }
    args
}

/// A value may have come from the environment, so its variable is named beside its flag.
fn name_the_variable(refusal: clap::Error, command: &clap::Command) -> clap::Error {
    let kind = refusal.kind();
    if !matches!(kind, ErrorKind::ValueValidation | ErrorKind::InvalidValue) {
        return refusal;
    }
    let Some(ContextValue::String(argument)) = refusal.get(ContextKind::InvalidArg) else {
        return refusal;
    };
    let flag = argument.split_whitespace().next().unwrap_or_default();
    let long = flag.trim_start_matches('-');
    let variable = command
        .get_subcommands()
        .flat_map(clap::Command::get_arguments)
        .find(|known| known.get_long() == Some(long))
        .and_then(clap::Arg::get_env)
        .and_then(|variable| variable.to_str());
    let Some(variable) = variable else {
        return refusal;
    };
    let said = refusal.to_string();
    let what = said.trim_start_matches("error: ");
    let what = what.split("\n\nFor more").next().unwrap_or(what).trim_end();
    let where_else = format!("{flag} is {variable} in the environment");
    clap::Error::raw(kind, format!("{what}\n{where_else}\n"))
}

/// Every variable of the environment that means something.
pub(crate) fn known_variables() -> Vec<String> {
    let command = Cli::command();
    let mut known: Vec<String> = command
        .get_subcommands()
        .flat_map(clap::Command::get_arguments)
        .filter_map(|argument| argument.get_env())
        .filter_map(|variable| variable.to_str().map(str::to_owned))
        .collect();
    known.sort_unstable();
    known.dedup();
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Cli, String> {
        let args = std::iter::once("seckill").chain(args.iter().copied());
        Cli::of(args.map(OsString::from)).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn without_a_command_it_serves() {
        for args in [&[][..], &["--role", "api"], &["serve"]] {
            let cli = parse(args).unwrap();
            assert!(matches!(cli.command, Command::Serve(_)), "{args:?}");
        }
        assert!(matches!(
            parse(&["openapi"]).unwrap().command,
            Command::Openapi
        ));
    }

    #[test]
    fn a_bad_value_is_refused_with_the_settings_names_and_what_is_allowed() {
        for (args, flag, variable, allowed) in [
            (
                ["--partitions", "0"],
                "--partitions",
                "SECKILL_PARTITIONS",
                "1..=1024",
            ),
            (
                ["--listen", "here"],
                "--listen",
                "SECKILL_LISTEN",
                "127.0.0.1:8080",
            ),
            (
                ["--order-ids", "uuid"],
                "--order-ids",
                "SECKILL_ORDER_IDS",
                "snowflake, daily",
            ),
            (
                ["--batch-max", "65"],
                "--batch-max",
                "SECKILL_BATCH_MAX",
                "1..=64",
            ),
            (["--role", "king"], "--role", "SECKILL_ROLE", "api, worker"),
        ] {
            let refusal = parse(&args).unwrap_err();
            for part in [flag, variable, allowed] {
                assert!(refusal.contains(part), "{part} is not in: {refusal}");
            }
        }
    }

    #[test]
    fn settings_have_one_vocabulary() {
        for variable in known_variables() {
            let flag = variable.strip_prefix("SECKILL_").unwrap();
            let flag = flag.to_lowercase().replace('_', "-");
            let command = Cli::command();
            let named = command
                .get_subcommands()
                .flat_map(clap::Command::get_arguments)
                .any(|argument| argument.get_long() == Some(&flag));
            assert!(named, "{variable} is not --{flag}");
        }
    }
}
