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

mod ledger_adjustments {
    seckill_tests::ledger_adjustments!(super::ledger_stand);
}

mod ledger_grants {
    seckill_tests::ledger_grants!(super::ledger_stand);
}

mod ledger_orders {
    seckill_tests::ledger_orders!(super::ledger_stand);
}

mod ledger_parking {
    seckill_tests::ledger_parking!(super::ledger_stand);
}

mod ledger_positions {
    seckill_tests::ledger_positions!(super::ledger_stand);
}

mod ledger_reads {
    seckill_tests::ledger_reads!(super::ledger_stand);
}

mod ledger_vouchers {
    seckill_tests::ledger_vouchers!(super::ledger_stand);
}

mod ledger_waitlist {
    seckill_tests::ledger_waitlist!(super::ledger_stand);
}

mod gate_updates {
    seckill_tests::gate_updates!(super::ledger_stand);
}

mod ledger_limits {
    seckill_tests::ledger_limits!(super::ledger_stand);
}

mod ledger_overdue {
    seckill_tests::ledger_overdue!(super::ledger_stand);
}

mod ledger_snapshots {
    seckill_tests::ledger_snapshots!(super::ledger_stand);
}
