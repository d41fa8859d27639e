//! L73: a clock that is set while the service runs.

use std::path::{Path, PathBuf};

use schema::clock::{Clock, SystemClock};
use schema::ids::Timestamp;

use crate::support::{Client, Service, Stage, eventually, seconds};

/// Shows its process another time, which can be changed while that runs.
fn library() -> PathBuf {
    let places = std::fs::read_dir("/usr/lib").unwrap();
    let library = places
        .map(|place| place.unwrap().path().join("faketime/libfaketimeMT.so.1"))
        .find(|library| library.exists());
    library.expect(
        "no libfaketime for this test: apt-get install -y --no-install-recommends libfaketime",
    )
}

/// Sets the clock of the process: `+0`, `-2h`, `+3d`.
fn set(clock: &Path, to: &str) {
    // In place of the former one at once: the process may read it at any moment.
    let new = clock.with_extension("new");
    std::fs::write(&new, format!("{to}\n")).unwrap();
    std::fs::rename(&new, clock).unwrap();
}

/// What the process takes for the time, in days from now.
async fn days_off(service: &Service) -> f64 {
    let mut browser = service.client();
    let answer = browser.sign_in("nobody", "wrong password").await;
    answer.refused(401, "bad_credentials");
    let newest = service.socket().get("/api/admin/audit?page_size=1").await;
    let newest = newest.expect(200);
    let at = newest["entries"][0]["at"].as_str().unwrap_or_default();
    let at = Timestamp::parse_rfc3339(at).unwrap_or_else(|| panic!("{newest}"));
    let off = at.as_secs() - SystemClock.now().as_secs();
    off as f64 / 86_400.0
}

/// Signs in and acts with what that gave.
async fn signs_in(service: &Service, password: &str) -> Client {
    let browser = service.client().signed_in("admin", password).await;
    browser.get("/api/user/info").await.expect(200);
    browser
}

#[tokio::test]
async fn l73_a_process_whose_clock_is_set_goes_on() {
    let stage = Stage::new();
    let clock = stage.path().join("clock");
    set(&clock, "+0");
    let service = stage
        .alone()
        .set("web.trusted_proxies", r#"["127.0.0.1"]"#)
        .env("LD_PRELOAD", &library().display().to_string())
        .env("FAKETIME_TIMESTAMP_FILE", &clock.display().to_string())
        .env("FAKETIME_NO_CACHE", "1")
        // Nobody sets the clocks that only go on.
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .start()
        .await;
    let password = stage.password();
    let first = signs_in(&service, password).await;
    for (to, days) in [("-2h", -0.083), ("+3d", 3.0), ("-3d", -3.0), ("+0", 0.0)] {
        set(&clock, to);
        let off = days_off(&service).await;
        assert!((off - days).abs() < 0.01, "{to}: {off}");
        let browser = signs_in(&service, password).await;
        // It leads, and works: a new user is observed although there is no engine.
        assert_eq!(
            browser.readiness_line("leadership", seconds(5)).await.1,
            "leadership: ok"
        );
        let name = format!("user{}", to.replace('+', "a").replace('-', "b"));
        let form = [("username", name.as_str()), ("wait", "0")];
        browser
            .post("/api/admin/users/create", &form)
            .await
            .expect(202);
        let object = format!("container/{name}");
        eventually("it is observed", seconds(30), async || {
            let seen = browser.object(&object).await;
            if seen["observed_generation"] == seen["generation"] {
                Ok(())
            } else {
                Err(seen.to_string())
            }
        })
        .await;
    }
    // Its time is there again, but it lay in the future meanwhile.
    first
        .get("/api/user/info")
        .await
        .refused(401, "not_signed_in");
}
