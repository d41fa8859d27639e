//! Logs on standard error, as text or JSON lines, filtered as `log.level` says.

use std::io::IsTerminal;

use api::settings::LogLevel;
use tracing::Subscriber;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, reload};

use crate::settings::LogFormat;

/// Noisy below their own warnings; the engine's client would log whole request bodies at debug, and WebSockets what is typed.
const QUIET: &str = "bollard=info,hyper=info,h2=info,rustls=info,sqlx=warn,tokio_tungstenite=info,tower=info,tungstenite=info,warp=info";
/// The environment variable that is obeyed in place of `log.level`.
const VARIABLE: &str = "RUST_LOG";

/// What is logged. Clones change the same filter; the default one belongs to nobody's log and changes nothing.
#[derive(Debug, Clone, Default)]
pub struct LogFilter {
    handle: Option<reload::Handle<EnvFilter, Registry>>,
    fixed: bool,
}

impl LogFilter {
    /// A filter with `log.level` at its default until it is set; with `directives`, the value of `RUST_LOG`, it stays
    /// as those say, which add to the default or override it.
    fn new(directives: Option<&str>) -> (Self, reload::Layer<EnvFilter, Registry>) {
        let filter = match directives {
            Some(given) => EnvFilter::new(format!("info,{QUIET},{given}")),
            None => filter_of(LogLevel::default()),
        };
        let (layer, handle) = reload::Layer::new(filter);
        let filter = Self {
            handle: Some(handle),
            fixed: directives.is_some(),
        };
        (filter, layer)
    }

    /// The environment variable that decides instead of `log.level`, if one does.
    pub fn fixed_by(&self) -> Option<&'static str> {
        self.fixed.then_some(VARIABLE)
    }

    /// Logs from this level on, at once, unless the environment has decided.
    pub fn set(&self, level: LogLevel) {
        let Some(handle) = self.handle.as_ref().filter(|_| !self.fixed) else {
            return;
        };
        // It fails only once nothing is logged any more.
        let _ = handle.reload(filter_of(level));
    }
}

/// The filter of a level. Libraries never log more than they do by default.
fn filter_of(level: LogLevel) -> EnvFilter {
    match level {
        LogLevel::Error | LogLevel::Warn => EnvFilter::new(level.to_string()),
        LogLevel::Info | LogLevel::Debug | LogLevel::Trace => {
            EnvFilter::new(format!("{level},{QUIET}"))
        }
    }
}

/// Starts logging. What is logged can be changed by what is returned.
pub fn start(format: LogFormat) -> LogFilter {
    let directives = std::env::var(VARIABLE).ok();
    // Templates set what is empty.
    let directives = directives.filter(|given| !given.trim().is_empty());
    let (filter, layer) = LogFilter::new(directives.as_deref());
    tracing_subscriber::registry()
        .with(layer)
        .with(lines(format))
        .init();
    std::panic::set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or("no message");
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place = place.as_deref(), message, "panic: this is a defect");
    }));
    filter
}

fn lines<S>(format: LogFormat) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
{
    let lines = fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().boxed(),
    }
}

#[cfg(test)]
mod tests {
    use tracing::{Level, enabled};

    use super::*;

    /// Which levels of our own are logged, and whether a library's debug line is.
    fn logged(filter: &LogFilter, set: LogLevel) -> (Vec<Level>, bool) {
        filter.set(set);
        let levels = [
            (Level::ERROR, enabled!(Level::ERROR)),
            (Level::WARN, enabled!(Level::WARN)),
            (Level::INFO, enabled!(Level::INFO)),
            (Level::DEBUG, enabled!(Level::DEBUG)),
            (Level::TRACE, enabled!(Level::TRACE)),
        ];
        let ours = levels.into_iter().filter(|(_, on)| *on);
        let ours = ours.map(|(level, _)| level).collect();
        (ours, enabled!(target: "bollard", Level::DEBUG))
    }

    #[test]
    fn the_level_of_a_running_log_changes_at_once() {
        let (filter, layer) = LogFilter::new(None);
        let log = tracing_subscriber::registry().with(layer);
        let _log = tracing::subscriber::set_default(log);
        assert_eq!(filter.fixed_by(), None);
        let all = [
            Level::ERROR,
            Level::WARN,
            Level::INFO,
            Level::DEBUG,
            Level::TRACE,
        ];
        for (level, count) in [
            (LogLevel::Debug, 4),
            (LogLevel::Error, 1),
            (LogLevel::Trace, 5),
            (LogLevel::Warn, 2),
            (LogLevel::Info, 3),
        ] {
            let expected = (all[..count].to_vec(), false);
            assert_eq!(logged(&filter, level), expected, "{level}");
        }
    }

    #[test]
    fn the_environment_decides_in_place_of_the_level() {
        let (filter, layer) = LogFilter::new(Some("warn,bollard=debug"));
        let log = tracing_subscriber::registry().with(layer);
        let _log = tracing::subscriber::set_default(log);
        assert_eq!(filter.fixed_by(), Some("RUST_LOG"));
        let expected = (vec![Level::ERROR, Level::WARN], true);
        assert_eq!(logged(&filter, LogLevel::Trace), expected);
    }
}
