//! Answers for snapshots, in the shape that a server gives them.

use serde_json::{Value, json};

/// A container whose image is missing.
pub fn broken() -> Value {
    json!({
        "success": true, "message": "container/alice",
        "object": "container/alice", "kind": "container", "name": "alice",
        "uid": "0123456789abcdef0123456789abcdef",
        "generation": 3, "observed_generation": 2, "paused": false,
        "created_at": "2026-05-09T11:46:40Z", "deleted_at": null,
        "conditions": [{
            "type": "Ready", "status": "False", "reason": "ImageMissing",
            "message": "the image registry:5000/agent:v2 is not on the engine",
            "observed_generation": 2, "last_transition_at": "2026-05-11T11:41:40.250Z",
            "remedy": "Pull the image, or set image.pull_policy to missing."
        }],
        "failures": 4, "next_attempt_at": "2026-05-11T11:47:01.500Z",
        "problem": "the newest change was not seen yet; before that: ImageMissing: the image registry:5000/agent:v2 is not on the engine",
        "since": "2026-05-11T11:41:40.250Z",
        "next": "at 2026-05-11T11:47:01.500Z, the image is looked for on the engine again (4 tries have failed)",
        "next_look_at": "2026-05-11T11:47:01.500Z",
        "force": {
            "command": "agentyard retry container/alice",
            "request": "POST /api/admin/reconcile/retry", "body": "object=container/alice"
        },
        "desired": {
            "running": true, "desired": "running", "disabled": false, "debug": false,
            "restart_token": "", "image": "registry:5000/agent:v2",
            "cpu_limit": null, "memory_limit_mb": 512
        },
        "observed": {
            "engine_id": "4f5e", "image_ref": "registry:5000/agent:v1", "image_id": "sha256:aa",
            "ip": "10.88.0.5", "started_at": "2026-05-11T10:00:00Z", "crash_count": 0,
            "last_exit_code": null
        },
        "plan": {
            "generation": 3, "actions": ["pull registry:5000/agent:v2", "create agentyard-alice.next-"],
            "conditions": [], "requeue_after_ms": null
        },
        "finalizers": ["container"],
        "events": [
            {"id": 8, "object": "container/alice", "reason": "ImageMissing", "action": "",
             "message": "the image registry:5000/agent:v2 is not on the engine", "count": 4,
             "first_at": "2026-05-11T11:41:40Z", "last_at": "2026-05-11T11:46:20Z"},
            {"id": 7, "object": "container/alice", "reason": "Progressing", "action": "Start",
             "message": "started agentyard-alice", "count": 1,
             "first_at": "2026-05-11T10:00:00Z", "last_at": "2026-05-11T10:00:00Z"}
        ]
    })
}

/// A container that is as it should be.
pub fn running() -> Value {
    json!({
        "success": true, "message": "container/bob",
        "object": "container/bob", "kind": "container", "name": "bob",
        "uid": "0123456789abcdef0123456789abcdee",
        "generation": 1, "observed_generation": 1, "paused": false,
        "created_at": "2026-05-09T11:46:40Z", "deleted_at": null,
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "Running", "message": "",
            "observed_generation": 1, "last_transition_at": "2026-05-11T11:41:40Z", "remedy": ""
        }],
        "failures": 0, "next_attempt_at": null,
        "problem": null, "since": null, "next": null, "next_look_at": null, "force": null,
        "desired": {"running": true, "desired": "running", "image": "registry:5000/agent:v1"},
        "observed": {"image_ref": "registry:5000/agent:v1", "ip": "10.88.0.6"},
        "plan": {"generation": 1, "actions": [], "conditions": [], "requeue_after_ms": 590_000},
        "finalizers": ["container"], "events": []
    })
}

/// What a server says of its reconcilers.
pub fn overview() -> Value {
    json!({
        "success": true, "message": "reconcilers", "paused": false,
        "leader": {"leading": true, "holder": null},
        "engine": {"available": true, "message": "27.0"},
        "reconcilers": [
            {"name": "engine", "paused": false}, {"name": "user", "paused": false},
            {"name": "container", "paused": false}
        ]
    })
}
