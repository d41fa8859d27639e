//! Logs on standard error, as text or JSON lines.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

use crate::settings::LogFormat;

/// Noisy below their own warnings; the engine's client would log whole request bodies at debug.
const QUIET: &str = "bollard=info,hyper=info,h2=info,rustls=info,sqlx=warn,tower=info,warp=info";

/// Starts logging. `RUST_LOG` adds to or overrides the filter.
pub fn start(format: LogFormat) {
    let filter = match std::env::var("RUST_LOG") {
        Ok(given) => EnvFilter::new(format!("info,{QUIET},{given}")),
        Err(_) => EnvFilter::new(format!("info,{QUIET}")),
    };
    let builder = fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match format {
        LogFormat::Text => builder.init(),
        LogFormat::Json => builder.json().init(),
    }
    std::panic::set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or("no message");
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place = place.as_deref(), message, "panic: this is a defect");
    }));
}
