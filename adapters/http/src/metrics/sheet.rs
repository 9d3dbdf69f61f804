//! A page of metrics while it is being written.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

/// Writes more metrics onto a page, each time it is asked for.
pub type MetricSource = Box<dyn Fn(&mut MetricSheet) + Send + Sync>;

/// A page of metrics while it is being written.
#[derive(Debug, Default)]
pub struct MetricSheet {
    families: Vec<Family>,
}

#[derive(Debug)]
struct Family {
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    samples: Vec<Sample>,
}

#[derive(Debug)]
struct Sample {
    labels: Vec<(&'static str, String)>,
    value: Value,
}

#[derive(Debug)]
enum Value {
    Counter(u64),
    Gauge(i64),
    Histogram { sum: f64, buckets: Vec<(f64, u64)> },
}

impl MetricSheet {
    /// A number that only rises since the process started. The page adds `_total` to its name.
    pub fn counter(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[(&'static str, &str)],
        value: u64,
    ) {
        self.add(
            name,
            help,
            MetricType::Counter,
            labels,
            Value::Counter(value),
        );
    }

    /// A number as it is now.
    pub fn gauge(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[(&'static str, &str)],
        value: u64,
    ) {
        let value = Value::Gauge(i64::try_from(value).unwrap_or(i64::MAX));
        self.add(name, help, MetricType::Gauge, labels, value);
    }

    /// Durations: how many fell into each bucket. `bounds_us` are the buckets' upper bounds in
    /// microseconds; `counts` has one more, for what was slower, and is not cumulative. On the page
    /// they are in seconds.
    pub fn latency(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[(&'static str, &str)],
        bounds_us: &[u64],
        counts: &[u64],
        sum_us: u64,
    ) {
        let bounds = bounds_us.iter().map(|bound| seconds(*bound));
        let buckets = bounds
            .chain([f64::INFINITY])
            .zip(counts.iter().copied())
            .collect();
        let sum = seconds(sum_us);
        let value = Value::Histogram { sum, buckets };
        self.add(name, help, MetricType::Histogram, labels, value);
    }

    fn add(
        &mut self,
        name: &'static str,
        help: &'static str,
        kind: MetricType,
        labels: &[(&'static str, &str)],
        value: Value,
    ) {
        let labels = labels
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect();
        let sample = Sample { labels, value };
        match self.families.iter_mut().find(|family| family.name == name) {
            Some(family) => family.samples.push(sample),
            None => self.families.push(Family {
                name,
                help,
                kind,
                samples: vec![sample],
            }),
        }
    }

    pub(super) fn encode(self) -> Result<String, fmt::Error> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut page = String::with_capacity(16 * 1_024);
        encode(&mut page, &registry)?;
        Ok(page)
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "exact up to 285 years of microseconds"
)]
fn seconds(micros: u64) -> f64 {
    micros as f64 / 1_000_000.0
}

impl Collector for MetricSheet {
    fn encode(&self, mut to: DescriptorEncoder<'_>) -> fmt::Result {
        for family in &self.families {
            let mut family_to =
                to.encode_descriptor(family.name, family.help, None, family.kind)?;
            for sample in &family.samples {
                if sample.labels.is_empty() {
                    sample.value.encode(&mut family_to)?;
                } else {
                    sample
                        .value
                        .encode(&mut family_to.encode_family(&sample.labels)?)?;
                }
            }
        }
        Ok(())
    }
}

impl Value {
    fn encode(&self, to: &mut MetricEncoder<'_>) -> fmt::Result {
        match self {
            Self::Counter(value) => to.encode_counter::<NoLabelSet, _, u64>(value, None),
            Self::Gauge(value) => to.encode_gauge(value),
            Self::Histogram { sum, buckets } => {
                let count = buckets.iter().map(|(_, count)| count).sum();
                to.encode_histogram::<NoLabelSet>(*sum, count, buckets, None)
            }
        }
    }
}
