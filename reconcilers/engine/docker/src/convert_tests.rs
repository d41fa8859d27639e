use super::*;
use serde_json::json;

fn requested() -> ContainerSettings {
    ContainerSettings {
        image: "sha256:aa".to_owned(),
        command: Some(vec!["/bin/agent".to_owned()]),
        environment: BTreeMap::from([("TOKEN".to_owned(), "a=b".to_owned())]),
        labels: BTreeMap::from([("io.agentyard.owner".to_owned(), "x".to_owned())]),
        user: Some("1000:1000".to_owned()),
        hostname: Some("alice".to_owned()),
        binds: vec![Bind {
            source: "/data/users/alice".to_owned(),
            target: "/root".to_owned(),
            read_only: false,
        }],
        network: "agentyard".to_owned(),
        nano_cpus: 500_000_000,
        memory_bytes: 64 << 20,
        pids_limit: 100,
        capabilities: vec!["CHOWN".to_owned()],
        log: LogLimits::default(),
        probe: None,
        overlay: None,
    }
}

/// What an engine would say of a container made with `body`.
fn echoed(body: &ContainerCreateBody) -> ContainerInspectResponse {
    let body = serde_json::to_value(body).unwrap();
    let mounts: Vec<_> = body["HostConfig"]["Mounts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mount| json!({"Type": "bind", "Source": mount["Source"], "Destination": mount["Target"], "RW": mount["ReadOnly"] != json!(true)}))
        .collect();
    serde_json::from_value(json!({
        "Id": "c1", "Name": "/agentyard-alice", "Created": "2026-01-02T03:04:05.678Z",
        "Image": body["Image"], "Config": body, "HostConfig": body["HostConfig"], "Mounts": mounts,
        "State": {"Status": "created", "ExitCode": 0, "StartedAt": "0001-01-01T00:00:00Z", "FinishedAt": "0001-01-01T00:00:00Z"},
    }))
    .unwrap()
}

#[test]
fn l58_settings_read_back_equal_the_settings_written() {
    let minimal = ContainerSettings {
        image: "sha256:aa".to_owned(),
        network: "agentyard".to_owned(),
        ..Default::default()
    };
    for wanted in [requested(), minimal] {
        let read = details(echoed(&container_body(&wanted))).unwrap();
        assert_eq!(read.settings, wanted);
        assert_eq!(read.deviations, Vec::<&str>::new());
    }
}

#[test]
fn l58_different_spellings_are_read_as_the_same() {
    let mut answer = echoed(&container_body(&requested()));
    let host = answer.host_config.as_mut().unwrap();
    host.cap_add = Some(vec!["CAP_CHOWN".to_owned()]);
    host.security_opt = Some(vec!["no-new-privileges:true".to_owned()]);
    host.restart_policy = Some(RestartPolicy::default());
    let read = details(answer).unwrap();
    assert_eq!(read.settings, requested());
    assert_eq!(read.deviations, Vec::<&str>::new());

    let mut answer = echoed(&container_body(&ContainerSettings::default()));
    let host = answer.host_config.as_mut().unwrap();
    (host.memory, host.nano_cpus, host.pids_limit) = (Some(0), Some(0), Some(-1));
    let read = details(answer).unwrap().settings;
    assert_eq!(
        (read.memory_bytes, read.nano_cpus, read.pids_limit),
        (0, 0, 0)
    );
}

#[test]
fn l40_a_container_is_made_without_privileges_and_with_limits() {
    let body = serde_json::to_value(container_body(&requested())).unwrap();
    let host: BTreeMap<String, serde_json::Value> =
        serde_json::from_value(body["HostConfig"].clone()).unwrap();
    let expected = json!({
        "CapAdd": ["CHOWN"],
        "CapDrop": ["ALL"],
        "Init": true,
        "LogConfig": {"Type": "json-file", "Config": {"max-size": "10m", "max-file": "3"}},
        "Memory": 64 << 20,
        "MemorySwap": 64 << 20,
        "Mounts": [{"Type": "bind", "Source": "/data/users/alice", "Target": "/root", "ReadOnly": false}],
        "NanoCpus": 500_000_000,
        "NetworkMode": "agentyard",
        "PidsLimit": 100,
        "Privileged": false,
        "RestartPolicy": {"Name": "no"},
        "SecurityOpt": ["no-new-privileges"],
    });
    assert_eq!(serde_json::to_value(host).unwrap(), expected);
}

#[test]
fn a_loosened_container_is_recognised() {
    let mut answer = echoed(&container_body(&requested()));
    let host = answer.host_config.as_mut().unwrap();
    host.restart_policy = Some(RestartPolicy {
        name: Some(RestartPolicyNameEnum::ALWAYS),
        maximum_retry_count: None,
    });
    host.privileged = Some(true);
    assert_eq!(
        details(answer).unwrap().deviations,
        ["privileged", "restart_policy"]
    );
}

#[test]
fn a_container_that_never_ran_has_no_exit_code() {
    let read = details(echoed(&container_body(&requested()))).unwrap();
    assert_eq!(
        (read.started_at, read.finished_at, read.exit_code),
        (None, None, None)
    );
    assert_eq!(
        read.container.created_at,
        Timestamp::from_secs(1_767_323_045)
    );
}

#[test]
fn an_answer_without_a_state_is_an_error_and_not_a_guess() {
    for state in [json!(null), json!("")] {
        let summary: ContainerSummary = serde_json::from_value(
            json!({"Id": "c1", "Names": ["/x"], "ImageID": "sha256:aa", "Created": 1, "State": state}),
        )
        .unwrap();
        assert!(matches!(container(summary), Err(EngineError::Internal(_))));
    }
}

#[test]
fn l29_the_gateway_is_the_first_address_of_the_subnet() {
    let ask = |subnet: &str| {
        network_body(&NetworkSettings {
            name: "agentyard".to_owned(),
            subnet: subnet.to_owned(),
            labels: BTreeMap::new(),
            isolation: Default::default(),
        })
        .map(|body| {
            body.ipam
                .unwrap()
                .config
                .unwrap()
                .remove(0)
                .gateway
                .unwrap()
        })
    };
    assert_eq!(ask("10.88.0.0/16").unwrap(), "10.88.0.1");
    assert_eq!(ask("10.88.0.192/26").unwrap(), "10.88.0.193");
    assert!(matches!(ask("10.88.0.5/16"), Err(EngineError::Refused(_))));
    assert!(matches!(ask("10.88.0.1/32"), Err(EngineError::Refused(_))));
    assert!(matches!(ask("banana"), Err(EngineError::Refused(_))));
}

#[test]
fn log_limits_are_read_in_every_unit() {
    let read = |size: &str| {
        log_limits(Some(HostConfigLogConfig {
            typ: Some("json-file".to_owned()),
            config: Some(HashMap::from([
                ("max-size".to_owned(), size.to_owned()),
                ("max-file".to_owned(), "3".to_owned()),
            ])),
        }))
        .max_size_mb
    };
    assert_eq!(
        [read("10m"), read("1g"), read("2048k"), read("x")],
        [10, 1024, 2, 0]
    );
}

#[test]
fn cpu_is_percent_of_one_core_and_memory_excludes_page_cache() {
    let answer = serde_json::from_value(json!({
        "pids_stats": {"current": 3},
        "cpu_stats": {"cpu_usage": {"total_usage": 2_000}, "system_cpu_usage": 20_000, "online_cpus": 4},
        "precpu_stats": {"cpu_usage": {"total_usage": 1_000}, "system_cpu_usage": 10_000},
        "memory_stats": {"usage": 5_000, "limit": 9_000, "stats": {"inactive_file": 1_000}},
        "networks": {"eth0": {"rx_bytes": 1, "tx_bytes": 2}, "eth1": {"rx_bytes": 10, "tx_bytes": 20}},
    }))
    .unwrap();
    assert_eq!(
        stats(answer),
        Some(Stats {
            cpu_percent: 40.0,
            memory_bytes: 4_000,
            memory_limit_bytes: 9_000,
            pids: Some(3),
            network_rx_bytes: Some(11),
            network_tx_bytes: Some(22),
        })
    );
    assert_eq!(
        stats(serde_json::from_value(json!({"pids_stats": {}})).unwrap()),
        None
    );
}
