//! Logs on standard error, as text or JSON lines, filtered as `log.level` says.

use std::io::{IsTerminal, Write};

use api::settings::LogLevel;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::fmt::MakeWriter;
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
    let lines = fmt::layer().with_ansi(std::io::stderr().is_terminal());
    match (format, is_journal()) {
        (LogFormat::Text, false) => lines.with_writer(std::io::stderr).boxed(),
        (LogFormat::Json, false) => lines.json().with_writer(std::io::stderr).boxed(),
        // The journal has times of its own.
        (LogFormat::Text, true) => lines
            .without_time()
            .with_writer(Journal(std::io::stderr))
            .boxed(),
        (LogFormat::Json, true) => lines.json().with_writer(Journal(std::io::stderr)).boxed(),
    }
}

/// Reports that standard error is the journal of systemd.
fn is_journal() -> bool {
    let named = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    let Ok(stream) = rustix::fs::fstat(std::io::stderr()) else {
        return false;
    };
    named == format!("{}:{}", stream.st_dev, stream.st_ino)
}

/// Returns the mark of a line of this level on standard error: one that the journal reads, else none.
pub fn mark(level: Level) -> &'static str {
    if is_journal() { priority(level) } else { "" }
}

/// Returns the mark of `sd-daemon(3)` for a level.
fn priority(level: Level) -> &'static str {
    match level {
        Level::ERROR => "<3>",
        Level::WARN => "<4>",
        Level::INFO => "<6>",
        Level::DEBUG | Level::TRACE => "<7>",
    }
}

/// Writes lines with the mark of their level.
struct Journal<M>(M);

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for Journal<M> {
    type Writer = Marked<M::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        self.marked(self.0.make_writer(), Level::INFO)
    }

    fn make_writer_for(&'a self, meta: &Metadata<'_>) -> Self::Writer {
        self.marked(self.0.make_writer_for(meta), *meta.level())
    }
}

impl<M> Journal<M> {
    fn marked<W>(&self, writer: W, level: Level) -> Marked<W> {
        Marked {
            writer,
            mark: priority(level),
        }
    }
}

/// A writer of one event, which comes in one piece.
struct Marked<W> {
    writer: W,
    mark: &'static str,
}

impl<W: Write> Write for Marked<W> {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        // Each line is an entry of the journal.
        let mut marked = Vec::with_capacity(text.len() + self.mark.len());
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            marked.extend_from_slice(self.mark.as_bytes());
            marked.extend_from_slice(line);
        }
        self.writer.write_all(&marked)?;
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing::enabled;

    use super::*;

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(text);
            Ok(text.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_for_the_journal_carry_their_level() {
        let log = Log::default();
        let writer = log.clone();
        let layer = fmt::layer()
            .without_time()
            .with_ansi(false)
            .with_target(false)
            .with_writer(Journal(move || writer.clone()));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::warn!("one");
            tracing::info!("two\nthree");
            tracing::error!("four");
        });
        let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<&str> = log.lines().collect();
        assert_eq!(
            lines,
            ["<4> WARN one", "<6> INFO two", "<6>three", "<3>ERROR four"]
        );
    }

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
