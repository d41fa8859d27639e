//! L69: what people do, or strangers try, does not make memory grow for good.

use futures::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::support::{Client, Service, Stage, eventually, seconds};

/// Sign-ins in all; half of them fail.
const SIGN_INS: usize = 500;
/// So many browsers at once.
const BROWSERS: usize = 4;
/// Accounts that sign in: one of them may do so once a second, if only for a while.
const ACCOUNTS: usize = 20;
/// How much more memory the service may have at the end, in bytes.
const MOST: u64 = 40 * 1024 * 1024;

async fn create(admin: &Client, name: &str) -> String {
    let form = [("username", name), ("wait", "0")];
    let body = admin
        .post("/api/admin/users/create", &form)
        .await
        .expect(202);
    body["password"].as_str().unwrap().to_owned()
}

/// Each from another address, so that no limit of attempts is reached.
async fn attempt(service: &Service, number: usize, name: &str, password: &str) -> u16 {
    let address = format!("198.18.{}.{}", number / 250, number % 250);
    let browser = service.client().header("X-Forwarded-For", &address);
    browser
        .clone()
        .sign_in(name, password)
        .await
        .status
        .as_u16()
}

#[tokio::test]
async fn l69_500_sign_ins_leave_no_memory_behind() {
    let stage = Stage::new();
    let service = stage
        .alone()
        .set("web.trusted_proxies", r#"["127.0.0.1"]"#)
        .start()
        .await;
    let before = service.memory();
    let admin = service.admin().await;
    let mut passwords = Vec::new();
    for number in 0..ACCOUNTS {
        passwords.push(create(&admin, &format!("user{number}")).await);
    }
    for first in (0..SIGN_INS).step_by(BROWSERS) {
        let batch = (first..first + BROWSERS).map(async |number| {
            let account = number % ACCOUNTS;
            let name = format!("user{account}");
            // Odd ones are wrong: the password, or there is no such name.
            match number % 4 {
                0 | 2 => assert_eq!(
                    attempt(&service, number, &name, &passwords[account]).await,
                    200
                ),
                1 => assert_eq!(attempt(&service, number, &name, "wrong one").await, 401),
                _ => assert_eq!(attempt(&service, number, "nobody", "wrong one").await, 401),
            }
        });
        join_all(batch).await;
    }
    let after = service.memory();
    let grown = after.saturating_sub(before);
    assert!(
        grown <= MOST,
        "grew by {} KiB, from {} KiB",
        grown / 1024,
        before / 1024
    );
}

/// Sends a file that is no adapter package over the admin socket; gives the first line of the answer.
async fn upload(stage: &Stage, file: &[u8]) -> String {
    let begin = "--B\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n";
    let end = "\r\n--B--\r\n";
    let head = format!(
        "POST /api/admin/migration-rules/upload HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: multipart/form-data; boundary=B\r\nContent-Length: {}\r\n\r\n{begin}",
        begin.len() + file.len() + end.len()
    );
    let mut stream = UnixStream::connect(stage.data().join("admin.sock"))
        .await
        .unwrap();
    for part in [head.as_bytes(), file, end.as_bytes()] {
        stream.write_all(part).await.unwrap();
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn l69_uploads_leave_no_memory_behind() {
    let stage = Stage::new();
    let service = stage.alone().start().await;
    let before = service.memory();
    let file: Vec<u8> = (0..12 * 1024 * 1024_u32).map(|n| (n % 251) as u8).collect();
    for _ in 0..8 {
        let answers = join_all((0..6).map(|_| upload(&stage, &file))).await;
        assert!(
            answers
                .iter()
                .all(|answer| answer.starts_with("HTTP/1.1 422 ")),
            "{answers:?}"
        );
    }
    eventually(
        "the memory is given back",
        seconds(30),
        async || match service.memory().saturating_sub(before) {
            ..=MOST => Ok(()),
            grown => Err(format!(
                "{} KiB more than {} KiB",
                grown / 1024,
                before / 1024
            )),
        },
    )
    .await;
}
