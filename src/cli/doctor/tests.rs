use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use super::finding::{Finding, Outcome};
use super::service::Service;
use super::*;
use crate::certificate::file_end;
use crate::settings::EngineSettings;

/// A command that a remedy names must exist.
fn assert_remedy(found: &Finding) {
    use clap::CommandFactory;
    let Some(remedy) = &found.remedy else {
        assert_eq!(found.result, Outcome::Ok, "{found:?}");
        return;
    };
    for command in remedy.split('`').skip(1).step_by(2) {
        let mut at = crate::cli::Cli::command();
        for word in command.split_whitespace().skip(1).take(2) {
            if let Some(next) = at.find_subcommand(word) {
                at = next.clone();
            } else {
                assert!(!at.has_subcommands(), "{command}");
            }
        }
    }
}

fn service(known: Value) -> Service {
    Service::of(known)
}

fn settings(data_dir: &Path) -> Settings {
    let common = CommonArgs {
        data_dir: Some(data_dir.to_owned()),
        ..CommonArgs::default()
    };
    Settings::resolve(&common, &InitArgs::default(), &ServeArgs::default()).unwrap()
}

#[test]
fn each_broken_part_of_the_service_is_found() {
    let fault =
        |fatal: bool| json!({"part": "storage", "fault": {"fatal": fatal, "message": "low"}});
    let condition = |status: &str| json!({"conditions": [{"type": "HostRestricted", "status": status, "message": "m"}]});
    let of_host = |wanted: &str, status: &str| {
        let known =
            json!({"config": {"container": {"host_access": wanted}}, "engine": condition(status)});
        service::host_access(Some(&service(known)))
    };
    let of_backup = |warnings: Value, backup: Value| {
        let known = json!({"overview": {"warnings": warnings, "backup": backup}});
        service::backup(Some(&service(known)))
    };
    let of_server =
        |parts: Value| service::server(&Ok(service(json!({"overview": {"health": parts}}))));
    let step = |ok: bool| json!({"steps": [{"name": "bind", "ok": ok, "detail": "d"}]});
    for (found, expected, part) in [
        (of_server(json!([])), Outcome::Ok, "ready"),
        (
            of_backup(json!([]), json!(null)),
            Outcome::Ok,
            "no schedule",
        ),
        (
            of_backup(
                json!(["backup.directory /b is old; add the line"]),
                json!({}),
            ),
            Outcome::Warning,
            "/b is old",
        ),
        (
            of_backup(json!([]), json!({"why": "no space"})),
            Outcome::Failed,
            "no space",
        ),
        (
            of_server(json!([fault(false)])),
            Outcome::Warning,
            "storage: low",
        ),
        (
            of_server(json!([fault(true)])),
            Outcome::Failed,
            "storage: low",
        ),
        (
            service::server(&Err(Failure::Unavailable(
                "no server answers; x".to_owned(),
            ))),
            Outcome::Failed,
            "no server answers",
        ),
        (of_host("service", "True"), Outcome::Ok, "m"),
        (of_host("service", "False"), Outcome::Warning, "m"),
        (of_host("enforce", "False"), Outcome::Failed, "m"),
        (service::host_access(None), Outcome::Warning, "not checked"),
        (
            service::steps(&step(true), "`agentyard auth test ldap`"),
            Outcome::Ok,
            "all steps",
        ),
        (
            service::steps(&step(false), "`agentyard auth test ldap`"),
            Outcome::Failed,
            "bind: d",
        ),
    ] {
        assert_eq!(found.result, expected, "{found:?}");
        assert!(found.message.contains(part), "{found:?}");
        assert_remedy(&found);
    }
}

#[test]
fn each_broken_part_of_the_machine_is_found() {
    let place = tempfile::tempdir().unwrap();
    let (data, socket) = (
        place.path().join("data"),
        place.path().join("data/admin.sock"),
    );
    let us = rustix::process::geteuid().as_raw();
    let check = || machine::permissions_of(&data, &socket, us);
    let set = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let mut found = vec![(check(), Outcome::Failed, "cannot be read")];
    std::fs::create_dir(&data).unwrap();
    set(&data, 0o700);
    found.push((check(), Outcome::Failed, "master.key"));
    schema::secrets::MasterKey::load_or_create(&data).unwrap();
    found.push((check(), Outcome::Ok, "only the server's user"));
    found.push((
        machine::permissions_of(&data, &socket, us + 1),
        Outcome::Failed,
        "belongs to user",
    ));
    set(&data, 0o755);
    found.push((check(), Outcome::Warning, "can read"));
    set(&data, 0o777);
    found.push((check(), Outcome::Failed, "0777"));
    set(&data, 0o700);
    std::fs::write(&socket, "").unwrap();
    set(&socket, 0o666);
    found.push((check(), Outcome::Failed, "0666"));
    set(&data.join("master.key"), 0o644);
    found.push((check(), Outcome::Failed, "master.key"));
    found.push((machine::disk_of(vec![data.clone()]), Outcome::Ok, "free"));
    found.push((machine::judge_mount(&data, true), Outcome::Ok, "no effect"));
    found.push((
        machine::judge_mount(&data, false),
        Outcome::Warning,
        "not on a nosuid mount",
    ));
    found.push((
        machine::disk_of(vec![data.join("none")]),
        Outcome::Failed,
        "cannot be read",
    ));
    let day = 24 * 60 * 60;
    for (end, expected, part) in [
        (-day, Outcome::Failed, "expired"),
        (3 * day, Outcome::Warning, "expires in 3 days"),
        (90 * day, Outcome::Ok, "90 days"),
    ] {
        found.push((
            certificate::judge(end, 0, Path::new("cert.pem")),
            expected,
            part,
        ));
    }
    found.push((
        network::judge(7200, 0, "a file").unwrap(),
        Outcome::Failed,
        "set back",
    ));
    assert_eq!(network::judge(-7200, 0, "a file"), None);
    for (found, expected, part) in found {
        assert_eq!(found.result, expected, "{found:?}");
        assert!(found.message.contains(part), "{part}: {found:?}");
        assert_remedy(&found);
    }
}

#[tokio::test]
async fn each_broken_address_is_found() {
    let place = tempfile::tempdir().unwrap();
    let settings = settings(place.path());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let open = listener.local_addr().unwrap();
    let closed = {
        let other = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        other.local_addr().unwrap()
    };
    let of_model = |known: Value| async move {
        network::model(Some(&service(json!({ "model": known })))).await
    };
    let at = |address: std::net::SocketAddr| json!({"configured": true, "model": "m", "address": format!("http://{address}/v1")});
    let public = json!({"config": {"web": {"public_url": format!("http://{closed}")}}});
    let warned = json!({"overview": {"warnings": ["web.trusted_proxies does not name 10.0.0.1"]}});
    for (found, expected, part) in [
        (
            of_model(json!({"configured": false})).await,
            Outcome::Warning,
            "no model",
        ),
        (of_model(at(open)).await, Outcome::Ok, "can be reached"),
        (
            of_model(at(closed)).await,
            Outcome::Failed,
            "cannot be reached",
        ),
        (
            network::proxy(Some(&service(json!({}))), &settings).await,
            Outcome::Ok,
            "none is known",
        ),
        (
            network::proxy(Some(&service(public)), &settings).await,
            Outcome::Failed,
            "cannot be reached",
        ),
        (
            network::proxy(Some(&service(warned)), &settings).await,
            Outcome::Warning,
            "10.0.0.1",
        ),
    ] {
        assert_eq!(found.result, expected, "{found:?}");
        assert!(found.message.contains(part), "{found:?}");
        assert_remedy(&found);
    }
}

#[test]
fn certificate_of_a_file_has_an_end() {
    let place = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let file = place.path().join("cert.pem");
    std::fs::write(&file, made.cert.pem()).unwrap();
    assert!(file_end(&file).unwrap().as_secs() > 1_700_000_000);
    std::fs::write(&file, "no certificate").unwrap();
    assert!(file_end(&file).is_err());
}

#[tokio::test]
async fn without_a_server_the_machine_is_checked() {
    let place = tempfile::tempdir().unwrap();
    let mut settings = settings(place.path());
    settings.engine = EngineSettings::Docker {
        host: format!("unix://{}/none.sock", place.path().display()),
        cert_path: None,
        data_dir: String::new(),
    };
    let server = Server::new(&settings).unwrap();
    let findings = check(&settings, &server).await;
    let names: Vec<_> = findings.iter().map(|found| found.check).collect();
    assert_eq!(names.len(), 15, "{names:?}");
    let of = |name: &str| findings.iter().find(|found| found.check == name).unwrap();
    for (name, expected) in [
        ("server", Outcome::Failed),
        ("engine", Outcome::Failed),
        ("database", Outcome::Warning),
        ("directory", Outcome::Warning),
        ("disk", Outcome::Ok),
        ("clock", Outcome::Ok),
    ] {
        assert_eq!(of(name).result, expected, "{:?}", of(name));
    }
    for found in &findings {
        assert!(!found.sentence().contains('\n'), "{found:?}");
        assert_remedy(found);
    }
}
