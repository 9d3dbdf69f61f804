//! The ledger in MySQL or MariaDB keeps the contract of every port.

use std::time::Duration;

use async_trait::async_trait;
use seckill_application::ports::LedgerPorts;
use seckill_mysql::{LedgerConfig, MySqlLedger};
use seckill_tests::contract::{LedgerHarness, PARTITIONS};
use seckill_tests::stack::{self, FreshDatabase};

struct LedgerStand {
    ports: LedgerPorts,
    // Last, so that it goes when nobody uses it any more.
    database: FreshDatabase,
}

async fn ledger_stand() -> Option<LedgerStand> {
    let stack = stack::shared().await?;
    let database = stack.fresh_database().await;
    let ledger = connect(&database).await;
    ledger.migrate().await.expect("an empty database");
    let ports = ledger.ports();
    let settled = ports.admissions.settle_partitions(PARTITIONS).await;
    assert_eq!(settled.expect("MySQL answers"), PARTITIONS);
    Some(LedgerStand { ports, database })
}

/// As one process has it, but with few connections: all tests share the server's.
async fn connect(database: &FreshDatabase) -> MySqlLedger {
    let config = LedgerConfig {
        max_connections: 4,
        writer_connections: 2,
        // The machine may be busy with other tests.
        acquire_timeout: Duration::from_secs(20),
        ..LedgerConfig::new(database.url())
    };
    MySqlLedger::connect(config).await.expect("MySQL answers")
}

#[async_trait]
impl LedgerHarness for LedgerStand {
    fn ledger(&self) -> &LedgerPorts {
        &self.ports
    }

    async fn another_process(&self) -> LedgerPorts {
        connect(&self.database).await.ports()
    }

    async fn elapse(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

seckill_tests::ledger_contract!(crate::ledger_stand);
