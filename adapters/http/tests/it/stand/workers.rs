//! The loops that a deployment runs, cut down to what the API needs.

use std::sync::Mutex;
use std::time::Duration;

use seckill_application::ports::{Clock as _, LeaseOwner};
use seckill_application::{OrderWriter, PublishEvents, Step, WriterSettings};
use seckill_domain::PartitionId;
use tokio::task::JoinHandle;

use super::Parts;

pub(super) struct Workers {
    writer: Mutex<Option<JoinHandle<()>>>,
    loader: JoinHandle<()>,
    publisher: JoinHandle<()>,
}

const PARTITION: PartitionId = PartitionId::new(0);

#[expect(
    clippy::disallowed_methods,
    reason = "a stand runs the loops that workers.rs runs in a deployment"
)]
fn run(work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(work)
}

impl Workers {
    pub(super) async fn start(parts: &Parts) -> Self {
        parts.recover.run(PARTITION).await.unwrap();
        let loading = parts.clone();
        let workers = Self {
            writer: Mutex::default(),
            loader: run(async move {
                loop {
                    let voucher = loading.wanted.next().await;
                    // Whoever wants it asks again.
                    drop(loading.load.run(voucher, Duration::ZERO).await);
                }
            }),
            publisher: run(publish(parts.clone())),
        };
        workers.resume_writer(parts);
        workers
    }

    pub(super) async fn pause_writer(&self) {
        let writer = self.writer.lock().unwrap().take();
        if let Some(writer) = writer {
            writer.abort();
            drop(writer.await);
        }
    }

    pub(super) fn resume_writer(&self, parts: &Parts) {
        let parts = parts.clone();
        *self.writer.lock().unwrap() = Some(run(write(parts)));
    }

    pub(super) fn stop_loading(&self) {
        self.loader.abort();
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.loader.abort();
        self.publisher.abort();
        if let Some(writer) = self.writer.lock().unwrap().take() {
            writer.abort();
        }
    }
}

async fn publish(parts: Parts) {
    let notifiers = vec![parts.hot.notifier.clone()];
    let owner = LeaseOwner("publisher".to_owned());
    let publish = PublishEvents::new(&parts.ledger, notifiers, owner);
    loop {
        publish.run().await.unwrap();
        parts.clock.sleep(Duration::from_millis(10)).await;
    }
}

async fn write(parts: Parts) {
    let settings = WriterSettings {
        block: Duration::from_millis(20),
        ..WriterSettings::default()
    };
    loop {
        let writer = OrderWriter::take_over(
            PARTITION,
            "writer".to_owned(),
            settings,
            &parts.hot,
            &parts.ledger,
            parts.recover.clone(),
            parts.wanted.clone(),
            parts.meters.clone(),
        )
        .await;
        if let Ok(mut writer) = writer {
            while let Ok(Step::Applied(_) | Step::Idle) = writer.step().await {}
        }
        tokio::task::yield_now().await;
    }
}
