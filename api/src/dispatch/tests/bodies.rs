//! What requests hold: bodies, fields and addresses.

use super::*;

#[tokio::test]
async fn the_three_kinds_of_body_mean_the_same() {
    let world = world().await;
    let filter = echoing(&world);
    let token = world.token("root");
    let form = format!("username=alice&note=a+b%26&wait=0&if_generation=3&csrf_token={token}");
    let json = format!(
        r#"{{"username":"alice","note":"a b&","wait":0,"if_generation":3,"csrf_token":"{token}"}}"#
    );
    let parts = [
        ("username", "alice"),
        ("note", "a b&"),
        ("wait", "0"),
        ("if_generation", "3"),
        ("csrf_token", &token),
    ]
    .map(|(name, value)| {
        format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    })
    .concat();
    let multipart = format!("{parts}--B--\r\n");
    for (kind, body) in [
        (FORM, form),
        ("application/json; charset=utf-8", json),
        ("multipart/form-data; boundary=B", multipart),
    ] {
        let response = post(&filter, START, &world.cookie("root"), kind, body).await;
        let answer = json_of(&response);
        assert_eq!(response.status(), 200, "{kind}: {answer}");
        assert_eq!(answer["username"], "alice");
        assert_eq!(answer["note"], "a b&");
        assert_eq!(answer["wait"], 0);
        assert_eq!(answer["if_generation"], 3);
        assert_eq!(answer["actor"], "root");
    }
}

#[tokio::test]
async fn parameters_of_a_post_never_come_from_the_query() {
    let world = world().await;
    let filter = echoing(&world);
    let path = format!("{START}?username=alice");
    let body = format!("csrf_token={}", world.token("root"));
    let response = post(&filter, &path, &world.cookie("root"), FORM, body).await;
    let answer = json_of(&response);
    assert_eq!(answer["code"], "invalid_parameter");
    assert_eq!(answer["field"], "username");
}

#[tokio::test]
async fn l64_hostile_bodies_are_refused_as_such() {
    let world = world().await;
    let filter = echoing(&world);
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(5000), "]".repeat(5000));
    let bodies: [(&str, &[u8], u16); 11] = [
        (FORM, b"username=%ff", 400),
        (FORM, b"username=\xff\xfe", 400),
        (FORM, b"username=a&username=b", 400),
        ("application/json", b"{\"username\":\"\xff\"}", 400),
        ("application/json", b"[1,2]", 400),
        ("application/json", b"{\"username\":", 400),
        ("application/json", deep.as_bytes(), 400),
        (
            "application/json",
            br#"{"username":"a","username":"b"}"#,
            400,
        ),
        ("multipart/form-data; boundary=B", b"--B\r\ngarbage", 400),
        ("text/plain", b"username=a", 415),
        ("application/octet-stream", b"\0", 415),
    ];
    for (kind, body, status) in bodies {
        let response = post(&filter, START, &world.cookie("root"), kind, body).await;
        assert_eq!(
            response.status().as_u16(),
            status,
            "{kind}: {:?}",
            response.body()
        );
        assert_eq!(json_of(&response)["success"], false);
    }
    let bad_name = format!("username=a%00b&csrf_token={}", world.token("root"));
    let response = post(&filter, START, &world.cookie("root"), FORM, bad_name).await;
    assert_eq!(json_of(&response)["field"], "username");
}

#[tokio::test]
async fn l64_hostile_addresses_are_refused_as_such() {
    let world = world().await;
    let filter = reached(&world);
    let root = world.cookie("root");
    for path in [
        "/api/admin/users?search=%ff",
        "/api/admin/users?%c3%28=1",
        "/api/admin/reconcile/objects/container/%ff",
    ] {
        let response = get(&filter, path, &root).await;
        assert_eq!(
            status_and_code(&response),
            (400, "invalid_encoding".to_owned()),
            "{path}"
        );
    }
    for path in [
        "/api/admin/users?page=1&page=2",
        "/api/admin/users?page=-1",
        "/api/admin/users?page_size=100000",
        "/api/admin/reconcile/objects/container/a?name=b",
    ] {
        let response = get(&filter, path, &root).await;
        assert_eq!(
            status_and_code(&response),
            (400, "invalid_parameter".to_owned()),
            "{path}"
        );
    }
}

#[tokio::test]
async fn l64_nul_is_refused_wherever_a_text_is_read() {
    let world = world().await;
    let filter = reached(&world);
    let root = world.cookie("root");
    let refused = |response: &Response<bytes::Bytes>, field: &str, what: &str| {
        assert_eq!(
            status_and_code(response),
            (400, "invalid_parameter".to_owned()),
            "{what}"
        );
        let answer = json_of(response);
        assert_eq!(answer["field"], field, "{what}");
        let rule = format!("{field} must not contain NUL characters");
        assert_eq!(answer["error"], rule, "{what}");
    };
    for (path, field) in [
        ("/api/admin/reconcile/objects/container/%00", "name"),
        ("/api/admin/reconcile/objects/%00/alice", "kind"),
        ("/api/v1/admin/reconcile/objects/container/a%00b/", "name"),
        ("/api/admin/audit?object=%00", "object"),
        ("/api/admin/users?search=a%00", "search"),
        ("/api/admin/task/status?task_id=%00", "task_id"),
        ("/api/admin/watch?last_event_id=%00", "last_event_id"),
        ("/api/health?unknown=%00", "unknown"),
    ] {
        refused(&get(&filter, path, &root).await, field, path);
    }
    let token = world.token("root");
    let part = "Content-Disposition: form-data; name";
    for (kind, body) in [
        (FORM, format!("object=user/%00&csrf_token={token}")),
        (FORM, format!("csrf_token={token}&object=user/a\0b")),
        (
            "application/json",
            format!(r#"{{"csrf_token":"{token}","object":"user/\u0000"}}"#),
        ),
        (
            "application/json",
            format!(r#"{{"csrf_token":"{token}","object":["user/a","\u0000"]}}"#),
        ),
        (
            "multipart/form-data; boundary=B",
            format!(
                "--B\r\n{part}=\"csrf_token\"\r\n\r\n{token}\r\n\
                 --B\r\n{part}=\"object\"\r\n\r\nuser/\0\r\n--B--\r\n"
            ),
        ),
    ] {
        let response = post(&filter, "/api/admin/reconcile/retry", &root, kind, &body).await;
        refused(&response, "object", &body);
    }
    for (path, field) in [
        ("/api/login", "password"),
        ("/api/admin/users/batch-create", "usernames"),
    ] {
        let body = format!("{field}=%00&csrf_token={token}");
        let response = post(&filter, path, &root, FORM, body).await;
        refused(&response, field, path);
    }
}

#[tokio::test]
async fn the_body_limit_is_one_mebibyte() {
    let world = world().await;
    let filter = reached(&world);
    let token = format!("csrf_token={}&x=", world.token("root"));
    for (size, status) in [(1024 * 1024, 200), (1024 * 1024 + 1, 413)] {
        let body = format!("{token}{}", "a".repeat(size - token.len()));
        let response = post(&filter, START, &world.cookie("root"), FORM, body).await;
        assert_eq!(response.status().as_u16(), status);
    }
}

#[tokio::test]
async fn l63_bodies_that_no_memory_is_left_for_are_turned_away() {
    let world = world().await;
    let mut api = world.api(Vec::new());
    api.requests = api.requests.with_few_kib(1, 2);
    let filter = api.filter();
    let root = format!("csrf_token={}&x=", world.token("root"));
    for (path, cookie, text, kib) in [
        ("/api/login", "", "x=", 1),
        (START, world.cookie("root").as_str(), root.as_str(), 2),
    ] {
        for (size, status) in [(kib * 1024, 200), (kib * 1024 + 1, 503)] {
            let body = format!("{text}{}", "a".repeat(size - text.len()));
            let response = post(&filter, path, cookie, FORM, body).await;
            assert_eq!(response.status().as_u16(), status, "{path}: {size}");
            assert_eq!(response.headers().contains_key(RETRY_AFTER), status == 503);
        }
    }
}

#[tokio::test]
async fn l63_a_strangers_body_is_at_most_16_kib() {
    let world = world().await;
    let filter = reached(&world);
    for (size, status) in [(16 * 1024, 200), (16 * 1024 + 1, 413)] {
        let body = format!("x={}", "a".repeat(size - 2));
        let response = post(&filter, "/api/login", "", FORM, body).await;
        assert_eq!(response.status().as_u16(), status);
    }
}

#[tokio::test]
async fn an_empty_body_may_have_any_type() {
    let world = world().await;
    let filter = reached(&world);
    let request = warp::test::request()
        .method("POST")
        .path(START)
        .header(COOKIE, world.cookie("root"))
        .header("x-csrf-token", world.token("root"))
        .header(CONTENT_TYPE, "text/plain;charset=UTF-8")
        .body("");
    assert_eq!(request.reply(&filter).await.status(), 200);
}

#[tokio::test]
async fn answer_without_memory_is_refused_before_its_handler_runs() {
    #[expect(clippy::disallowed_methods, reason = "in a test")]
    static RUNNING: tokio::sync::Semaphore = tokio::sync::Semaphore::const_new(0);
    async fn wait(_: OrdinaryUser, _: Input<Nothing>, _: Deps) -> Result<Reply> {
        RUNNING.add_permits(1);
        tokio::time::sleep(Duration::from_millis(300)).await;
        Ok(Reply::ok("read"))
    }
    let world = world().await;
    let filter = world.api(vec![with_handler("chat_entries", wait)]).filter();
    let cookie = world.cookie("alice");
    let path = "/api/agent/chat/entries?id=x";
    // A user has 32 MiB for answers, of which each of these takes 12.
    let answers = [(); 4].map(|()| get(&filter, path, &cookie));
    let answers = futures::future::join_all(answers).await;
    let mut statuses: Vec<u16> = answers.iter().map(|it| it.status().as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 503, 503]);
    assert_eq!(RUNNING.available_permits(), 2);
    assert_eq!(get(&filter, path, &cookie).await.status(), StatusCode::OK);
}
