//! What a reader is told who cannot reach his database.

use std::time::Duration;

use seckill_application::Fault;
use seckill_mysql::{LedgerConfig, MySqlLedger};

use crate::server::FreshDatabase;

async fn refusal(url: String) -> Fault {
    let config = LedgerConfig {
        acquire_timeout: Duration::from_secs(5),
        ..LedgerConfig::new(url)
    };
    match MySqlLedger::connect(config).await {
        Ok(_) => panic!("it connected"),
        Err(fault) => fault,
    }
}

fn assert_says(fault: &Fault, words: &[&str]) {
    let said = fault.chain();
    for word in words {
        assert!(said.contains(word), "{word:?} is not in: {said}");
    }
    assert!(!said.contains("wrong-password"), "{said}");
}

#[tokio::test]
async fn a_wrong_password_is_told_as_such_and_not_tried_again() {
    let database = FreshDatabase::create().await;
    let url = database.url.replacen("seckill@", "wrong-password@", 1);
    assert_ne!(url, database.url);
    let fault = refusal(url).await;
    assert!(!fault.is_retryable());
    assert_says(
        &fault,
        &["does not let this user in", "Access denied", "1045"],
    );
}

#[tokio::test]
async fn a_database_that_is_not_there_is_told_by_name() {
    let database = FreshDatabase::create().await;
    let fault = refusal(format!("{}_gone", database.url)).await;
    assert!(!fault.is_retryable());
    let name = format!("{}_gone", database.name);
    assert_says(&fault, &["no such database", &name]);
}

#[tokio::test]
async fn a_url_without_a_database_is_told_what_it_lacks() {
    let database = FreshDatabase::create().await;
    let without = database.url.trim_end_matches(&database.name);
    for url in [without, without.trim_end_matches('/')] {
        let fault = refusal(url.to_owned()).await;
        assert!(!fault.is_retryable());
        assert_says(&fault, &["names no database", "mysql://user:password@host"]);
    }
}

#[tokio::test]
async fn a_closed_port_is_told_with_its_address_and_may_open() {
    let fault = refusal("mysql://seckill:wrong-password@127.0.0.1:1/seckill".to_owned()).await;
    assert!(fault.is_retryable());
    assert_says(&fault, &["127.0.0.1:1", "refused"]);
}

#[tokio::test]
async fn a_port_that_says_nothing_is_told_so_in_time() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let config = LedgerConfig {
        acquire_timeout: Duration::from_millis(300),
        ..LedgerConfig::new(format!("mysql://seckill:wrong-password@{address}/seckill"))
    };
    let Err(fault) = MySqlLedger::connect(config).await else {
        panic!("it connected");
    };
    assert!(fault.is_retryable());
    assert_says(&fault, &[&address.to_string(), "no answer within 300 ms"]);
}
