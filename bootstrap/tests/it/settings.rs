//! A bad setting is refused at start, by its name, with what is allowed, and without its value if
//! that may be secret.

use std::process::{Command, Output};

fn seckill(args: &[&str], settings: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_seckill"));
    for (variable, _) in std::env::vars().filter(|(name, _)| name.starts_with("SECKILL_")) {
        command.env_remove(variable);
    }
    command
        .args(args)
        .envs(settings.iter().copied())
        .output()
        .unwrap()
}

fn refused(settings: &[(&str, &str)], words: &[&str]) {
    let output = seckill(&["serve"], settings);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{settings:?}: {said}");
    for word in words {
        assert!(said.contains(word), "{word} is not in: {said}");
    }
    for (_, value) in settings {
        let secret = value.contains("phrase");
        assert!(!secret || !said.contains("phrase"), "{said}");
    }
}

const REDIS: (&str, &str) = ("SECKILL_GATE", "redis://:passphrase@127.0.0.1:1");
const MYSQL: (&str, &str) = (
    "SECKILL_LEDGER",
    "mysql://app:passphrase@127.0.0.1:1/seckill",
);

#[test]
fn in_memory_a_process_is_everything() {
    refused(
        &[("SECKILL_ROLE", "worker")],
        &["SECKILL_ROLE", "must be all"],
    );
}

#[test]
fn a_secret_for_notices_is_long_enough() {
    refused(
        &[("SECKILL_PAYMENTS_SECRET", "phrase")],
        &["SECKILL_PAYMENTS_SECRET", "32 bytes"],
    );
}

#[test]
fn a_gate_that_is_no_address_is_refused_before_anything_is_waited_for() {
    let secret = (
        "SECKILL_AUTH_SECRET",
        "another phrase of more than 32 bytes",
    );
    let gate = ("SECKILL_GATE", "redis://127.0.0.1:1/abc");
    refused(&[gate, MYSQL, secret], &["SECKILL_GATE"]);
}

#[test]
fn numbers_and_choices_have_bounds() {
    refused(
        &[("SECKILL_PARTITIONS", "0")],
        &["SECKILL_PARTITIONS", "1..=1024"],
    );
    refused(
        &[("SECKILL_LISTEN", "80")],
        &["SECKILL_LISTEN", "127.0.0.1:8080"],
    );
    refused(
        &[("SECKILL_ORDER_IDS", "uuid")],
        &["SECKILL_ORDER_IDS", "snowflake", "daily"],
    );
    refused(
        &[("SECKILL_LEASE_TTL_MS", "soon")],
        &["SECKILL_LEASE_TTL_MS"],
    );
    refused(
        &[("SECKILL_LOG", "seckill=loud=very")],
        &["SECKILL_LOG", "debug"],
    );
}

#[test]
fn a_mixture_of_memory_and_real_stores_is_refused() {
    refused(&[REDIS], &["SECKILL_LEDGER", "mysql://"]);
    refused(&[MYSQL], &["SECKILL_GATE", "redis://"]);
}

#[test]
fn a_url_of_something_else_is_refused() {
    refused(
        &[("SECKILL_GATE", "http://passphrase@localhost")],
        &["SECKILL_GATE", "memory://", "redis://"],
    );
    refused(
        &[REDIS, ("SECKILL_LEDGER", "postgres://passphrase@localhost")],
        &["SECKILL_LEDGER", "mysql://"],
    );
    refused(
        &[
            REDIS,
            MYSQL,
            ("SECKILL_NAMESPACE", "a{b}"),
            (
                "SECKILL_AUTH_SECRET",
                "0123456789012345678901234567890123456789",
            ),
        ],
        &["SECKILL_NAMESPACE", "braces"],
    );
}

#[test]
fn the_real_profile_needs_a_secret_of_its_own() {
    refused(&[REDIS, MYSQL], &["SECKILL_AUTH_SECRET", "32 bytes"]);
    refused(
        &[REDIS, MYSQL, ("SECKILL_AUTH_SECRET", "short-phrase")],
        &["SECKILL_AUTH_SECRET", "32 bytes"],
    );
    let built_in = "seckill-in-memory-demonstration-secret-known-to-everybody";
    refused(
        &[REDIS, MYSQL, ("SECKILL_AUTH_SECRET", built_in)],
        &["SECKILL_AUTH_SECRET", "known to everybody"],
    );
    refused(
        &[("SECKILL_AUTH_PUBLIC_KEY", "/nowhere.pem")],
        &["SECKILL_AUTH_PUBLIC_KEY", "PEM"],
    );
}

#[test]
fn a_neighbour_that_is_down_is_named_after_the_patience() {
    let secret = (
        "SECKILL_AUTH_SECRET",
        "0123456789012345678901234567890123456789",
    );
    let patience = ("SECKILL_START_PATIENCE_S", "1");
    let listen = ("SECKILL_LISTEN", "127.0.0.1:0");
    let output = seckill(&[], &[REDIS, MYSQL, secret, patience, listen]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("SECKILL_LEDGER"), "{said}");
    assert!(!said.contains("passphrase"), "{said}");
}

#[test]
fn help_lists_every_setting_with_its_default() {
    let output = seckill(&["serve", "--help"], &[]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    for part in [
        "SECKILL_LISTEN",
        "127.0.0.1:8080",
        "SECKILL_GATE",
        "SECKILL_LEDGER",
        "memory://",
        "SECKILL_AUTH_SECRET",
        "SECKILL_PARTITIONS",
        "SECKILL_NAMESPACE",
        "SECKILL_ORDER_IDS",
        "SECKILL_BACKLOG_MAX",
        "200000",
    ] {
        assert!(said.contains(part), "{part} is not in: {said}");
    }
}
