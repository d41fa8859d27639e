//! L19: sign-in attempts are limited by who really asks.

use crate::support::{Client, Service, Stage};

/// Attempts in five minutes.
const ALLOWED: usize = 10;

async fn wrong(browser: &mut Client, name: &str) -> u16 {
    let answer = browser.sign_in(name, "not the password").await;
    answer.status.as_u16()
}

/// The eleventh attempt is refused, and says when to come back.
async fn is_refused(service: &Service, browser: &mut Client, name: &str, password: &str) {
    let answer = browser.sign_in(name, password).await;
    answer.refused(429, "too_many_attempts");
    let after = answer.headers["retry-after"].to_str().unwrap();
    let seconds: u64 = after.parse().unwrap();
    assert!((1..=300).contains(&seconds), "{seconds}");
    // The service itself is well.
    service.client().get("/api/health").await.expect(200);
}

#[tokio::test]
async fn l19_the_eleventh_attempt_is_refused_even_with_the_right_password() {
    let stage = Stage::new();
    let service = stage.alone().start().await;
    let mut browser = service.client();
    for _ in 0..ALLOWED {
        assert_eq!(wrong(&mut browser, "admin").await, 401);
    }
    is_refused(&service, &mut browser, "admin", stage.password()).await;
}

#[tokio::test]
async fn l19_forged_forwarding_headers_do_not_help() {
    let stage = Stage::new();
    let service = stage.alone().start().await;
    for number in 0..ALLOWED {
        let mut browser = service
            .client()
            .header("X-Forwarded-For", &format!("203.0.113.{number}"))
            .header("Forwarded", &format!("for=203.0.113.{number}"))
            .header("X-Real-IP", &format!("203.0.113.{number}"));
        assert_eq!(wrong(&mut browser, "admin").await, 401);
    }
    let mut browser = service
        .client()
        .header("X-Forwarded-For", "198.51.100.7")
        .header("Forwarded", "for=198.51.100.7");
    is_refused(&service, &mut browser, "admin", stage.password()).await;
}

#[tokio::test]
async fn l19_failed_attempts_with_ever_other_names_are_limited_too() {
    let stage = Stage::new();
    let service = stage.alone().start().await;
    let mut browser = service.client();
    for number in 0..ALLOWED {
        assert_eq!(wrong(&mut browser, &format!("user{number}")).await, 401);
    }
    is_refused(&service, &mut browser, "another", "whatever it is").await;
}
