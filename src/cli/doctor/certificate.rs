//! Certificates of the server's own listener and of its connection to the engine.

use std::path::{Path, PathBuf};

use api::server::Tls;
use schema::clock::{Clock, SystemClock};
use schema::ids::Timestamp;

use super::finding::Finding;
use crate::certificate::file_end;
use crate::settings::Settings;

/// Days before its end in which a certificate should be renewed.
const RENEW: i64 = 14;
const DAY: i64 = 24 * 60 * 60;

/// Certificates, those of the connection to the engine included: readable, private, and valid for a while.
pub(super) async fn certificates(settings: &Settings, of_engine: Vec<PathBuf>) -> Finding {
    let settings = settings.clone();
    let checked = tokio::task::spawn_blocking(move || check(&settings, of_engine)).await;
    checked.unwrap_or_else(|error| Finding::failed(error.to_string(), "try again"))
}

fn check(settings: &Settings, of_engine: Vec<PathBuf>) -> Finding {
    let now = SystemClock.now().as_secs();
    let mut files: Vec<PathBuf> = Vec::new();
    if let Some((certificate, key)) = &settings.tls {
        if let Err(error) = Tls::load(certificate.clone(), key.clone()) {
            return Finding::failed(
                schema::error::chain(&error),
                "correct the files of --tls-cert and --tls-key; the key needs mode 0600",
            );
        }
        files.push(certificate.clone());
    }
    files.extend(of_engine);
    let mut soonest: Option<(i64, PathBuf)> = None;
    for file in files {
        match file_end(&file).map(Timestamp::as_secs) {
            Ok(end) if soonest.as_ref().is_none_or(|(first, _)| end < *first) => {
                soonest = Some((end, file));
            }
            Ok(_) => {}
            Err(why) => {
                let remedy = "replace the file with a PEM certificate";
                return Finding::failed(format!("{}: {why}", file.display()), remedy);
            }
        }
    }
    if let Some((end, file)) = soonest {
        return judge(end, now, &file);
    }
    match settings.listen.ip().is_loopback() {
        true => Finding::ok("none in use; the server listens on this machine only"),
        false => Finding::warning(
            format!(
                "{} is served without TLS: passwords are sent unencrypted",
                settings.listen
            ),
            "start the server with --tls-cert and --tls-key, or with --listen 127.0.0.1:8080 behind a proxy with TLS",
        ),
    }
}

pub(super) fn judge(end: i64, now: i64, file: &Path) -> Finding {
    let (days, file) = ((end - now).div_euclid(DAY), file.display());
    let remedy = "renew it; the server reads a new file within 5 s";
    match days {
        ..0 => Finding::failed(format!("{file} expired {} days ago", -days), remedy),
        0..RENEW => Finding::warning(format!("{file} expires in {days} days"), remedy),
        _ => Finding::ok(format!("valid for {days} days")),
    }
}
