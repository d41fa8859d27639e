//! `agentyard user limits`.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::cli::admin::escaped;
use crate::cli::effect::How;
use crate::cli::kinds;
use crate::cli::output::cell::{at, number};
use crate::cli::output::screen;
use crate::cli::server::Server;
use crate::cli::target::bare_name;
use crate::cli::{Failure, Result, pages};

/// Tries to change what others change meanwhile.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_millis(300);

/// Limits of a user's container.
#[derive(Debug, Args)]
pub struct LimitsArgs {
    /// Name of the user
    #[arg(value_name = "NAME", value_parser = bare_name)]
    name: String,
    /// Number of cores, such as 1.5; 0 = no limit; `default` = container.cpu_limit
    #[arg(long, value_name = "CORES", value_parser = cores)]
    cpu: Option<Limit>,
    /// Memory in MiB, such as 512, or with a unit, such as 2GiB; 0 = no limit; `default` = container.memory_limit_mb
    #[arg(long, value_name = "MIB", value_parser = mebibytes)]
    memory: Option<Limit>,
    /// Return immediately
    #[arg(short, long)]
    detach: bool,
}

/// A limit to set.
#[derive(Debug, Clone, PartialEq)]
enum Limit {
    /// As configured for all users.
    Default,
    /// Own value of the user.
    Own(Value),
}

fn cores(text: &str) -> Result<Limit, String> {
    if text == "default" {
        return Ok(Limit::Default);
    }
    match text.parse::<f64>() {
        Ok(cores) if cores.is_finite() && cores >= 0.0 => Ok(Limit::Own(json!(cores))),
        _ => Err("use a number of cores such as 1.5, or default".to_owned()),
    }
}

fn mebibytes(text: &str) -> Result<Limit, String> {
    if text == "default" {
        return Ok(Limit::Default);
    }
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "m" | "mi" | "mb" | "mib" => Some(1),
        "g" | "gi" | "gb" | "gib" => Some(1024),
        _ => None,
    };
    let number = digits.parse::<u32>().ok().map(u64::from);
    match (number, factor) {
        (Some(number), Some(factor)) => Ok(Limit::Own(json!(number * factor))),
        _ => Err("use MiB such as 512, or 2GiB, or default".to_owned()),
    }
}

/// Shows the limits of a user's container, or changes those that are given.
///
/// # Errors
/// There is no such user, no server answers, or it refuses.
pub async fn limits(server: &Server, args: LimitsArgs) -> Result {
    let name = &args.name;
    let path = format!("/api/admin/reconcile/objects/container/{}", escaped(name));
    for _ in 0..TRIES {
        let object = match server.get(&path).await {
            Err(Failure::NotFound(_)) => {
                let kind = kinds::parse("user").map_err(Failure::Usage)?;
                return Err(pages::missing(server, kind, name).await);
            }
            answer => answer?,
        };
        let config = server.get("/api/config").await?;
        let current = Current {
            cpu: find_limit(&object, &config, "cpu_limit"),
            memory: find_limit(&object, &config, "memory_limit_mb"),
        };
        if args.cpu.is_none() && args.memory.is_none() {
            return screen::print(&describe(&current, &config));
        }
        let mut body = json!({
            "username": name,
            // The route sets both: what is not given stays.
            "cpu_limit": limit_value(args.cpu.clone().unwrap_or(current.cpu)),
            "memory_limit_mb": limit_value(args.memory.clone().unwrap_or(current.memory)),
            "if_generation": number(&object, "generation"),
        });
        if args.detach {
            body["wait"] = json!(0);
        }
        let route = "/api/admin/container/limits";
        if let Some(answer) = server.post_unless_stale(route, &body).await? {
            let how = How {
                dry_run: false,
                detach: args.detach,
            };
            return how.report(server, &answer).await;
        }
        // Another change, such as the end of the user's creation, came between.
        sleep(PAUSE).await;
    }
    Err(Failure::Failed(format!(
        "container/{name}: it was changed {TRIES} times meanwhile; run the command again"
    )))
}

struct Current {
    cpu: Limit,
    memory: Limit,
}

/// The limit in force. One that equals the configured value counts as configured.
fn find_limit(object: &Value, config: &Value, key: &str) -> Limit {
    let desired = at(object, "desired");
    let value = at(desired, key);
    let configured = at(config, "container");
    match value.as_f64() == at(configured, key).as_f64() {
        true => Limit::Default,
        false => Limit::Own(value.clone()),
    }
}

/// The value in a request; an empty one returns to what is configured.
fn limit_value(limit: Limit) -> Value {
    match limit {
        Limit::Default => json!(""),
        Limit::Own(value) => json!(value.to_string()),
    }
}

fn describe(current: &Current, config: &Value) -> String {
    let line = |title: &str, limit: &Limit, key: &str, unit: &str| {
        let (value, source) = match limit {
            Limit::Own(value) => (value, "of this user"),
            Limit::Default => (at(at(config, "container"), key), "as configured"),
        };
        let value = match value.as_f64() {
            Some(0.0) => "no limit".to_owned(),
            Some(1.0) => format!("1 {}", unit.trim_end_matches('s')),
            Some(number) => format!("{number} {unit}"),
            None => "unknown".to_owned(),
        };
        format!("{title:<8}{value} ({source})\n")
    };
    line("cpu:", &current.cpu, "cpu_limit", "cores")
        + &line("memory:", &current.memory, "memory_limit_mb", "MiB")
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::os::unix::net::UnixListener;
    use std::path::Path;

    use super::*;

    /// A server that gives these answers, one for each connection. Returns the bodies that it was sent.
    fn serve(
        answers: Vec<(u16, Value)>,
        socket: &Path,
    ) -> std::thread::JoinHandle<Vec<Option<Value>>> {
        let listener = UnixListener::bind(socket).unwrap();
        std::thread::spawn(move || {
            let bodies = answers.into_iter().map(|(status, answer)| {
                let (stream, _) = listener.accept().unwrap();
                let mut reader = BufReader::new(stream);
                let mut length = 0;
                loop {
                    let mut line = String::new();
                    reader.read_line(&mut line).unwrap();
                    if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                        length = text.trim().parse().unwrap();
                    }
                    if line.trim().is_empty() {
                        break;
                    }
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                let answer = answer.to_string();
                let head = format!(
                    "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n",
                    answer.len()
                );
                let stream = reader.get_mut();
                stream.write_all((head + &answer).as_bytes()).unwrap();
                serde_json::from_slice(&body).ok()
            });
            bodies.collect()
        })
    }

    #[tokio::test]
    async fn limits_of_a_changed_user_are_set_at_the_next_try() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("admin.sock");
        let object = |generation| {
            let desired = json!({"cpu_limit": 1, "memory_limit_mb": 512});
            (200, json!({"generation": generation, "desired": desired}))
        };
        let config = || {
            let container = json!({"cpu_limit": 2, "memory_limit_mb": 512});
            (200, json!({"container": container}))
        };
        let stale = json!({"success": false, "code": "stale_generation"});
        let done = json!({"success": true, "message": "limits saved"});
        let answers = vec![
            object(1),
            config(),
            (412, stale),
            object(2),
            config(),
            (200, done),
        ];
        let served = serve(answers, &socket);
        let common = crate::settings::CommonArgs {
            admin_socket: Some(socket),
            ..Default::default()
        };
        let args = LimitsArgs {
            name: "alice".to_owned(),
            cpu: None,
            memory: Some(Limit::Own(json!(64))),
            detach: true,
        };
        limits(&Server::resolve(&common).unwrap(), args)
            .await
            .unwrap();
        let bodies = served.join().unwrap();
        let sent: Vec<&Value> = bodies.iter().flatten().collect();
        let body = |generation: u64| json!({"username": "alice", "cpu_limit": "1", "memory_limit_mb": "64", "if_generation": generation, "wait": 0});
        assert_eq!(sent, [&body(1), &body(2)]);
    }

    #[test]
    fn limits_are_read_with_units() {
        for (text, expected) in [
            ("512", 512),
            ("512MiB", 512),
            ("2GiB", 2048),
            ("2g", 2048),
            ("0", 0),
        ] {
            assert_eq!(mebibytes(text), Ok(Limit::Own(json!(expected))), "{text}");
        }
        for text in ["", "G", "1.5", "-1", "1T", "99999999999"] {
            assert!(mebibytes(text).is_err(), "{text}");
        }
        assert_eq!(cores("1.5"), Ok(Limit::Own(json!(1.5))));
        assert_eq!(cores("default"), Ok(Limit::Default));
        for text in ["", "-1", "NaN", "inf", "two"] {
            assert!(cores(text).is_err(), "{text}");
        }
    }

    #[test]
    fn limits_are_shown_with_their_source() {
        let config = json!({"container": {"cpu_limit": 0.0, "memory_limit_mb": 1024}});
        let object = json!({"desired": {"cpu_limit": 1.5, "memory_limit_mb": 1024}});
        let current = Current {
            cpu: find_limit(&object, &config, "cpu_limit"),
            memory: find_limit(&object, &config, "memory_limit_mb"),
        };
        assert_eq!(
            describe(&current, &config),
            "cpu:    1.5 cores (of this user)\nmemory: 1024 MiB (as configured)\n"
        );
        assert_eq!(limit_value(current.cpu), json!("1.5"));
        assert_eq!(limit_value(current.memory), json!(""));
        let unlimited = Current {
            cpu: Limit::Default,
            memory: Limit::Own(json!(0)),
        };
        assert_eq!(
            describe(&unlimited, &config),
            "cpu:    no limit (as configured)\nmemory: no limit (of this user)\n"
        );
    }
}
