//! Metrics of the process, as Prometheus reads them.
//!
//! Each metric is one row of the table in `table.rs`: name, kind, labels and help. The registry, the zeros of a fresh process and
//! `docs/monitoring/metrics.md` are made from the rows. Labels take values from bounded sets only: patterns of routes, reconcilers,
//! kinds and results, never names of users.
//!
//! Counters and histograms are written where something happens, in any crate. Gauges are written where the value is known,
//! most of them right before they are read.

mod table;

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::LazyLock;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::prometheus_text;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::{counter, gauge, histogram};
use prometheus_client::registry::Registry;

pub use prometheus_text::CONTENT_TYPE;
pub use table::*;

type Labels = Vec<(&'static str, Cow<'static, str>)>;
type RawCounter = counter::Counter<f64, AtomicU64>;
type RawGauge = gauge::Gauge<f64, AtomicU64>;

/// Upper bounds of all histograms, in seconds: from a read of memory to a pull of an image.
const BUCKETS: [f64; 14] = [
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0,
];

/// A label of a metric.
#[derive(Debug, Clone, Copy)]
pub struct Label {
    /// Its name.
    pub name: &'static str,
    /// Its values; empty when they are known to the running service only.
    pub values: &'static [&'static str],
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Definition {
    /// The name, with its unit.
    pub name: &'static str,
    /// The labels, in the order in which values are given.
    pub labels: &'static [Label],
    help: &'static str,
}

impl Definition {
    /// The meaning, as a sentence.
    pub fn help(&self) -> &'static str {
        self.help.trim()
    }

    fn labels(&self, values: &[&str]) -> Labels {
        debug_assert_eq!(self.labels.len(), values.len(), "{}", self.name);
        let pairs = self.labels.iter().zip(values);
        pairs
            .map(|(label, value)| {
                let known = label.values.iter().find(|known| *known == value);
                let value =
                    known.map_or_else(|| Cow::Owned((*value).to_owned()), |known| (*known).into());
                (label.name, value)
            })
            .collect()
    }

    /// Every combination of the values of the labels; none when those of one are not known beforehand.
    fn combinations(&self) -> Vec<Vec<&'static str>> {
        let mut all = vec![Vec::new()];
        for label in self.labels {
            let longer = all.iter().flat_map(|first| {
                let longer = |value: &&'static str| [first.as_slice(), &[*value]].concat();
                label.values.iter().map(longer)
            });
            all = longer.collect();
        }
        all
    }
}

/// A metric of any kind.
pub trait Metric: Sync {
    /// Its row of the table.
    fn definition(&self) -> &Definition;
    /// Its kind, as Prometheus calls it.
    fn kind(&self) -> &'static str;
    /// Makes a series for each combination of labels that is known beforehand.
    fn begin(&self);
    /// Adds it to a registry.
    fn register(&self, registry: &mut Registry);
}

macro_rules! kind {
    ($(#[$doc:meta])* $kind:ident, $word:literal, $family:ty, $new:expr) => {
        $(#[$doc])*
        pub struct $kind {
            definition: Definition,
            family: LazyLock<$family>,
        }

        impl std::fmt::Debug for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_tuple(stringify!($kind)).field(&self.definition.name).finish()
            }
        }

        impl $kind {
            const fn new(name: &'static str, help: &'static str, labels: &'static [Label]) -> Self {
                Self {
                    definition: Definition { name, labels, help },
                    family: LazyLock::new($new),
                }
            }

            /// Makes the series of these labels, at zero.
            pub fn touch(&self, labels: &[&str]) {
                drop(self.family.get_or_create(&self.definition.labels(labels)));
            }
        }

        impl Metric for $kind {
            fn definition(&self) -> &Definition {
                &self.definition
            }

            fn kind(&self) -> &'static str {
                $word
            }

            fn begin(&self) {
                for labels in self.definition.combinations() {
                    self.touch(&labels);
                }
            }

            fn register(&self, registry: &mut Registry) {
                // The library adds the suffix of counters and the full stop.
                let name = self.definition.name.trim_end_matches("_total");
                let help = self.definition.help().trim_end_matches('.');
                registry.register(name, help, self.family.clone());
            }
        }
    };
}

kind! {
    /// A number that only grows, until the process ends.
    Counter, "counter", Family<Labels, RawCounter>, Family::default
}
kind! {
    /// A number that rises and falls.
    Gauge, "gauge", Family<Labels, RawGauge>, Family::default
}
kind! {
    /// A distribution of durations, in seconds.
    Histogram, "histogram", Family<Labels, histogram::Histogram, fn() -> histogram::Histogram>,
    || Family::new_with_constructor(|| histogram::Histogram::new(BUCKETS))
}

impl Counter {
    /// Counts one.
    pub fn increment(&self, labels: &[&str]) {
        self.add(labels, 1.0);
    }

    /// Counts so many.
    pub fn add(&self, labels: &[&str], n: f64) {
        let labels = self.definition.labels(labels);
        self.family.get_or_create(&labels).inc_by(n);
    }

    /// Takes over the count of a counter that is kept elsewhere and only grows.
    pub fn follow(&self, labels: &[&str], total: f64) {
        let labels = self.definition.labels(labels);
        let counter = self.family.get_or_create(&labels);
        counter.inc_by((total - counter.get()).max(0.0));
    }

    /// The present count.
    pub fn get(&self, labels: &[&str]) -> f64 {
        let labels = self.definition.labels(labels);
        self.family.get_or_create(&labels).get()
    }
}

impl Gauge {
    /// Sets the value.
    pub fn set(&self, labels: &[&str], value: f64) {
        let labels = self.definition.labels(labels);
        self.family.get_or_create(&labels).set(value);
    }

    /// Forgets all series, before those that there are now are set.
    pub fn clear(&self) {
        self.family.clear();
    }

    /// Sets 1 or 0.
    pub fn set_flag(&self, labels: &[&str], value: bool) {
        self.set(labels, f64::from(u8::from(value)));
    }

    /// Counts one more for as long as the result lives.
    #[must_use]
    pub fn hold(&'static self, labels: &[&str]) -> Held {
        let labels = self.definition.labels(labels);
        let gauge = self.family.get_or_create_owned(&labels);
        gauge.inc();
        Held(gauge)
    }

    /// The present value.
    pub fn get(&self, labels: &[&str]) -> f64 {
        let labels = self.definition.labels(labels);
        self.family.get_or_create(&labels).get()
    }
}

impl Histogram {
    /// Records one duration.
    pub fn observe(&self, labels: &[&str], time: Duration) {
        let labels = self.definition.labels(labels);
        self.family
            .get_or_create(&labels)
            .observe(time.as_secs_f64());
    }
}

/// One that a gauge counts.
pub struct Held(RawGauge);

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Held")
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// All metrics in the text format of Prometheus.
pub struct Exposition(Registry);

impl std::fmt::Debug for Exposition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Exposition")
    }
}

impl Default for Exposition {
    fn default() -> Self {
        let mut registry = Registry::default();
        for metric in ALL {
            metric.begin();
            metric.register(&mut registry);
        }
        Self(registry)
    }
}

impl Exposition {
    /// Writes them as they are now.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing into memory does not fail.
        let _ = prometheus_text::encode(&mut text, &self.0);
        text
    }
}

/// The table as a page for people.
pub fn document() -> String {
    let mut page = String::from(PREFACE);
    for metric in ALL {
        let definition = metric.definition();
        let labels = definition.labels.iter().map(|label| match label.values {
            [] => format!("`{}`", label.name),
            values => format!("`{}` ({})", label.name, values.join(", ")),
        });
        let labels: Vec<_> = labels.collect();
        let labels = if labels.is_empty() {
            "–".to_owned()
        } else {
            labels.join("; ")
        };
        let (name, kind, help) = (definition.name, metric.kind(), definition.help());
        let _ = writeln!(page, "| `{name}` | {kind} | {labels} | {help} |");
    }
    page
}

const PREFACE: &str = "\
# Metrics

`agentyard serve` serves them at `http://127.0.0.1:9464/metrics` (`--metrics-listen`), in the text format of Prometheus. This page is made
from the table in `schema/src/metric/table.rs`; a test compares them.

No label has the name of a user, a group, an image or an address as its value. Times are Unix times in seconds; 0 means never. What is
read from the database is read at each scrape, in one snapshot of a fixed number of statements; while the database does not answer
(`agentyard_database_up` is 0), these keep their last values. No scrape asks the engine. Counters begin at 0 with the process.
Numbers of reconcilers and agents are those of the process that leads (`agentyard_leader`); on a standby they are 0.

| metric | kind | labels | meaning |
| --- | --- | --- | --- |
";

#[cfg(test)]
mod tests;
