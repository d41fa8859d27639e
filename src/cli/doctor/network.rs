//! Checks that go over the network: clocks of other hosts, the proxy, the model.

use std::time::{Duration, SystemTime};

use reqwest::{Client, Response};
use schema::clock::{Clock, SystemClock};
use schema::db::Backend;
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::Url;

use super::finding::Finding;
use super::service::Service;
use crate::cli::output::cell::{at, text};
use crate::settings::Settings;

/// Longest time for one answer.
const ANSWER: Duration = Duration::from_secs(4);
/// Difference of clocks that identity providers bear, in seconds.
const MOST_APART: i64 = 60;

async fn ask(url: Url) -> Result<Response, String> {
    // Installed by main already, unless a test asks.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder()
        .timeout(ANSWER)
        .redirect(reqwest::redirect::Policy::none())
        .build();
    let client = client.map_err(|error| error.to_string())?;
    client.get(url).send().await.map_err(|error| {
        let error = error.without_url();
        schema::error::chain(&error)
    })
}

/// The wall clock, compared with files of the service and with the clock of the provider or of the public address.
pub(super) async fn clock(service: Option<&Service>, settings: &Settings) -> Finding {
    let now = SystemClock.now().as_secs();
    let mut files = vec![settings.admin_socket.clone()];
    if let Backend::Sqlite(file) = &settings.database {
        files.push(file.clone());
    }
    for file in files {
        let changed = tokio::fs::metadata(&file)
            .await
            .and_then(|found| found.modified());
        if let Ok(changed) = changed
            && let Some(finding) = judge(seconds(changed), now, "a file of the service")
        {
            return finding;
        }
    }
    let urls = service.into_iter().flat_map(|service| {
        let provider = match service.setting("web", "auth_mode") == "oidc" {
            true => service.setting("oidc", "provider_url").as_str(),
            false => None,
        };
        [provider, service.setting("web", "public_url").as_str()]
    });
    let url = urls.flatten().find_map(|url| url.parse::<Url>().ok());
    if let Some(url) = url
        && let Ok(answer) = ask(url.clone()).await
    {
        let date = answer.headers().get("date");
        let date = date.and_then(|date| date.to_str().ok()).and_then(read_date);
        let host = url.host_str().unwrap_or_default();
        return match date {
            Some(there) if (there - now).abs() > MOST_APART => Finding::failed(
                format!(
                    "it differs from that of {host} by {} s",
                    (there - now).abs()
                ),
                "set this machine's clock and enable time synchronisation (timedatectl set-ntp true)",
            ),
            Some(_) => Finding::ok(format!("equal to the clock of {host}")),
            None => Finding::ok("no file of the service is dated in the future"),
        };
    }
    Finding::ok("no file of the service is dated in the future")
}

fn seconds(moment: SystemTime) -> i64 {
    let since = moment.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}

/// Reads `Date` as HTTP servers write it.
fn read_date(text: &str) -> Option<i64> {
    let at = httpdate(text)?;
    Some(seconds(at))
}

fn httpdate(text: &str) -> Option<SystemTime> {
    // `Sun, 06 Nov 1994 08:49:37 GMT`, as RFC 3339 for the parser that is there.
    let mut words = text.split_whitespace().skip(1);
    let (day, month, year, time) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let months = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let month = months.find(month)? / 3 + 1;
    humantime::parse_rfc3339(&format!("{year}-{month:02}-{day:0>2}T{time}Z")).ok()
}

pub(super) fn judge(changed: i64, now: i64, what: &str) -> Option<Finding> {
    let ahead = changed - now;
    (ahead > MOST_APART).then(|| {
        Finding::failed(
            format!("{what} was changed {ahead} s in the future, so the clock was set back"),
            "set this machine's clock and enable time synchronisation (timedatectl set-ntp true)",
        )
    })
}

/// The proxy in front, as far as it can be known.
pub(super) async fn proxy(service: Option<&Service>, settings: &Settings) -> Finding {
    let Some(service) = service else {
        return Finding::unknown();
    };
    let warnings = at(&service.overview, "warnings").as_array();
    let mut warnings = warnings
        .into_iter()
        .flatten()
        .filter_map(|one| one.as_str());
    let told = warnings.find(|one| one.contains("trusted_proxies") || one.contains("proxy"));
    if let Some(told) = told {
        return Finding::warning(
            told,
            "name its address with `agentyard config set web.trusted_proxies='[\"ADDRESS\"]'`",
        );
    }
    let public = service
        .setting("web", "public_url")
        .as_str()
        .unwrap_or_default();
    let Ok(url) = public.parse::<Url>() else {
        let listen = settings.listen;
        return Finding::ok(format!(
            "none is known (web.public_url is not set); people use {listen}"
        ));
    };
    let remedy = "forward all paths from the proxy to the server, or correct web.public_url with `agentyard config set`";
    let mut health = url.clone();
    health.set_path(&format!("{}/api/health", url.path().trim_end_matches('/')));
    match ask(health).await {
        Err(why) => Finding::failed(format!("{public} cannot be reached: {why}"), remedy),
        Ok(answer) => {
            let status = answer.status().as_u16();
            let is_ours = answer.headers().contains_key("x-request-id");
            match (status, is_ours) {
                (200, true) => Finding::ok(format!(
                    "{public} reaches this server (WebSockets are not checked)"
                )),
                (200, false) => Finding::failed(format!("{public} is another server"), remedy),
                _ => Finding::failed(format!("{public} answers {status}"), remedy),
            }
        }
    }
}

/// The address of the model.
pub(super) async fn model(service: Option<&Service>) -> Finding {
    let Some(service) = service else {
        return Finding::unknown();
    };
    let model = &service.model;
    if model["configured"] != true {
        let message = match text(model, "message").as_str() {
            "" => "no model is chosen, so agents cannot answer".to_owned(),
            message => message.to_owned(),
        };
        return Finding::warning(message, "`agentyard model set PROVIDER --model MODEL`");
    }
    let address = text(model, "address");
    let Ok(url) = address.parse::<Url>() else {
        return Finding::ok(format!(
            "{} (its address is not known)",
            text(model, "model")
        ));
    };
    let (host, port) = (
        url.host_str().unwrap_or_default(),
        url.port_or_known_default(),
    );
    let host = host.trim_matches(['[', ']']);
    let connecting = TcpStream::connect((host, port.unwrap_or(443)));
    let why = match timeout(ANSWER, connecting).await {
        Ok(Ok(_)) => {
            let model = text(model, "model");
            return Finding::ok(format!(
                "{host} can be reached (`agentyard model try` asks {model})"
            ));
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => "no answer".to_owned(),
    };
    Finding::failed(
        format!("{address} cannot be reached from this machine: {why}"),
        "start it, or correct the address with `agentyard model set PROVIDER --model MODEL --address URL`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_of_an_answer_is_read() {
        assert_eq!(
            read_date("Sun, 06 Nov 1994 08:49:37 GMT"),
            Some(784_111_777)
        );
        assert_eq!(read_date("yesterday"), None);
    }
}
