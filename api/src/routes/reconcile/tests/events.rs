//! What is told of what happened.

use super::*;

#[tokio::test]
async fn events_outlive_their_object() {
    let (yard, _) = with(Asked::default()).await;
    let uid = yard.user("alice").await;
    let mut tx = yard.world.db.begin().await.unwrap();
    for (second, message) in ["first", "second"].into_iter().enumerate() {
        let at = NOW.plus(Duration::from_secs(second as u64));
        event::record(
            &mut tx,
            Kind::User,
            &uid,
            Reason::Progressing,
            "Archive",
            message,
            at,
        )
        .await
        .unwrap();
    }
    tx.commit().await.unwrap();
    yard.post("/api/admin/users/delete", "username=alice&wait=0")
        .await
        .is(202);
    yard.purge(&uid).await;
    let events = |query: &'static str| {
        let yard = &yard;
        async move { yard.get(&format!("/api/admin/events?{query}")).await }
    };
    let body = events("object=user/alice").await.is(200);
    let messages: Vec<_> = body["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| &e["message"])
        .collect();
    assert_eq!(messages, ["second", "first"]);
    let since = events("since=1778500001&limit=5").await.is(200);
    assert_eq!(since["events"].as_array().unwrap().len(), 1);
    assert_eq!(
        events("object=container/alice").await.is(200)["events"],
        json!([])
    );
    for bad in ["object=alice", "since=x", "limit=0", "limit=1001"] {
        let answer = events(bad).await;
        answer.fails(400, "invalid_parameter");
    }
}

#[tokio::test]
async fn l60_events_come_in_pages_and_by_what_they_say() {
    let (yard, _) = with(Asked::default()).await;
    let alice = yard.user("alice").await;
    let mut tx = yard.world.db.begin().await.unwrap();
    for n in 0..5_u64 {
        let at = NOW.plus(Duration::from_secs(n));
        let (kind, reason) = match n {
            0..3 => (Kind::Container, Reason::CrashLoop),
            _ => (Kind::User, Reason::Progressing),
        };
        let message = format!("number {n}");
        event::record(&mut tx, kind, &alice, reason, "", &message, at)
            .await
            .unwrap();
    }
    tx.commit().await.unwrap();
    let numbers = async |query: &str| {
        let body = yard
            .get(&format!("/api/admin/events?{query}"))
            .await
            .is(200);
        let events = body["events"].as_array().unwrap();
        let messages = events
            .iter()
            .map(|event| event["message"].as_str().unwrap());
        let numbers: String = messages.filter_map(|text| text.chars().last()).collect();
        (numbers, body)
    };
    let (all, body) = numbers("").await;
    assert_eq!((all.as_str(), &body["total"]), ("43210", &json!(5)));
    assert_eq!(body["events"][0]["uid"], "alice");
    for (query, expected) in [
        ("limit=2", ("43", 1, 2, 5, 3)),
        ("page=2&page_size=2", ("21", 2, 2, 5, 3)),
        ("page=9&page_size=2", ("0", 3, 2, 5, 3)),
        ("kind=container", ("210", 1, 100, 3, 1)),
        ("object=container/ALICE&page=1", ("210", 1, 20, 3, 1)),
        ("reason=CrashLoop&since=1778500001", ("21", 1, 100, 2, 1)),
        ("search=NUMBER%203", ("3", 1, 20, 1, 1)),
        ("search=nothing", ("", 1, 20, 0, 1)),
    ] {
        let (numbers, body) = numbers(query).await;
        let field = |name: &str| body[name].as_i64().unwrap();
        let page = (
            field("page"),
            field("page_size"),
            field("total"),
            field("total_pages"),
        );
        assert_eq!(
            (numbers.as_str(), page.0, page.1, page.2, page.3),
            expected,
            "{query}"
        );
    }
    for (bad, field) in [
        ("kind=pod", "kind"),
        ("kind=user&object=user/alice", "kind"),
        ("reason=crash", "reason"),
        ("limit=0", "limit"),
    ] {
        let answer = yard.get(&format!("/api/admin/events?{bad}")).await;
        let body = answer.fails(400, "invalid_parameter");
        assert_eq!(body["field"], field, "{body}");
    }
}

#[tokio::test]
async fn what_happened_to_the_service_is_told_with_a_remedy() {
    let (yard, _) = with(Asked::default()).await;
    let mut tx = yard.world.db.begin().await.unwrap();
    event::record_of_service(&mut tx, Reason::TaskEnded, "user.bell", "it panicked", NOW)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    for query in ["", "?object=service/agentyard"] {
        let path = format!("/api/admin/events{query}");
        let body = yard.get(&path).await.is(200);
        let event = &body["events"][0];
        assert_eq!(
            (&event["object"], &event["action"], &event["reason"]),
            (
                &json!("service/agentyard"),
                &json!("user.bell"),
                &json!("TaskEnded")
            )
        );
        assert_eq!(event["remedy"], Reason::TaskEnded.remedy());
    }
}
