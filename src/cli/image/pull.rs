//! `agentyard image pull`: follows a pull of the server.

use clap::Args;
use indicatif::ProgressBar;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::cli::output::cell::{cleaned, number, text};
use crate::cli::output::clean::clean;
use crate::cli::output::screen;
use crate::cli::server::Server;
use crate::cli::sse::Events;
use crate::cli::{Failure, Result};

/// Without a terminal, a line is printed each time so many percent more are done.
const STEP: u64 = 10;

/// What to pull.
#[derive(Debug, Args)]
pub struct PullArgs {
    /// Tag of the configured repository, or reference
    #[arg(value_name = "IMAGE")]
    image: String,
}

/// Requests a pull and shows it until its end.
///
/// # Errors
/// When no server answers, it refuses, or the pull fails.
pub async fn pull(server: &Server, args: &PullArgs) -> Result {
    let body = json!({ "image": args.image });
    let path = "/api/admin/images/pull";
    let request = server.request(Method::POST, path).json(&body);
    let request = request.header("accept", "text/event-stream");
    let answer = server.open(request).await?;
    if answer.status() != StatusCode::OK {
        return server.read(answer).await.map(drop);
    }
    let mut events = Events::of(answer);
    let mut view = View::new(&args.image);
    let mut ended = None;
    while ended.is_none()
        && let Some(event) = events.next().await?
    {
        let data = event.data.unwrap_or_default();
        ended = serde_json::from_str(&data)
            .ok()
            .and_then(|event| view.show(&event));
    }
    view.clear();
    match ended {
        Some(End::Done(digest)) => screen::print(&format!("{}\n", done(&args.image, &digest))),
        Some(End::Failed(why)) => Err(Failure::Failed(format!("{}: {why}", args.image))),
        None => Err(Failure::Unavailable(format!(
            "the connection was lost, but the pull continues; `{} get images` shows its progress",
            server.command
        ))),
    }
}

fn done(image: &str, digest: &str) -> String {
    match digest {
        "" => format!("pulled {}", clean(image)),
        digest => format!("pulled {} ({})", clean(image), clean(digest)),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum End {
    Done(String),
    Failed(String),
}

/// A bar on a terminal, else a line now and then.
struct View {
    image: String,
    bar: Option<ProgressBar>,
    /// The percentage that the next line is for.
    next: u64,
}

impl View {
    fn new(image: &str) -> Self {
        let bar = screen::bar(100, "{prefix} [{bar:30}] {pos:>3} % {wide_msg}");
        if let Some(bar) = &bar {
            bar.set_prefix(clean(image));
        }
        Self {
            image: clean(image),
            bar,
            next: 0,
        }
    }

    /// Shows one event; gives the end if it was the last.
    fn show(&mut self, event: &Value) -> Option<End> {
        let text = |key: &str| text(event, key);
        match text("status").as_str() {
            "done" => return Some(End::Done(text("digest"))),
            "error" => return Some(End::Failed(cleaned(event, "error"))),
            _ => {}
        }
        let percent = number(event, "percent");
        let what = [text("id"), text("status"), text("progress")];
        let what = what.map(|part| clean(&part)).join(" ");
        match &self.bar {
            Some(bar) => {
                bar.set_position(percent);
                bar.set_message(what.trim().to_owned());
            }
            None if percent >= self.next => {
                screen::note(&format!("{}: {percent} % {}", self.image, what.trim()));
                self.next = (percent / STEP + 1) * STEP;
            }
            None => {}
        }
        None
    }

    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l37_the_last_event_tells_how_it_ended() {
        let mut view = View {
            image: "a".to_owned(),
            bar: None,
            next: 0,
        };
        let going = json!({"status": "Downloading", "id": "1f", "percent": 12});
        assert_eq!(view.show(&going), None);
        assert_eq!(view.next, 20);
        let done = json!({"status": "done", "digest": "sha256:1"});
        assert_eq!(view.show(&done), Some(End::Done("sha256:1".to_owned())));
        let failed = json!({"status": "error", "error": "denied"});
        assert_eq!(view.show(&failed), Some(End::Failed("denied".to_owned())));
    }
}
