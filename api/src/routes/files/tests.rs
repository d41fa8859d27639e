//! The files of a workspace, over HTTP.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use http::StatusCode;
use schema::audit;
use schema::home::Homes;
use schema::usage::Quota;
use serde_json::{Value, json};

use crate::routes::yard::{Answer, Yard, yard};

/// The yard with alice's workspace, and her cookie.
struct Own {
    yard: Yard,
    cookie: String,
}

async fn own() -> Own {
    let yard = yard().await;
    let cookie = yard.sign_in("alice").await;
    make_home(&yard, "alice").await;
    Own { yard, cookie }
}

pub(in crate::routes) async fn make_home(yard: &Yard, name: &str) {
    let user = yard.find(name).await.unwrap();
    let homes = Homes::open(yard.world.data_dir(), "test").unwrap();
    homes.ensure(&user.name, &user.uid, None).unwrap();
}

fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// A part of a form; a file when it has a file name.
fn part(name: &str, file: Option<&str>, content: &[u8]) -> Vec<u8> {
    let file = file.map(|file| {
        let file = file.replace('"', "%22").replace('\r', "%0D");
        format!("; filename=\"{}\"", file.replace('\n', "%0A"))
    });
    let mut part = format!(
        "--X\r\nContent-Disposition: form-data; name=\"{name}\"{}\r\n\r\n",
        file.unwrap_or_default()
    )
    .into_bytes();
    part.extend_from_slice(content);
    part.extend_from_slice(b"\r\n");
    part
}

fn form(parts: &[(&str, Option<&str>, &[u8])]) -> Vec<u8> {
    let mut body: Vec<u8> = parts
        .iter()
        .flat_map(|(name, file, content)| part(name, *file, content))
        .collect();
    body.extend_from_slice(b"--X--\r\n");
    body
}

impl Own {
    fn at(&self, path: &str) -> PathBuf {
        let top = "users/alice/.agent/workspace";
        self.yard.world.data_dir().join(top).join(path)
    }

    async fn get(&self, path: &str) -> Answer {
        self.yard.get(path).with("alice", &self.cookie).send().await
    }

    async fn post(&self, path: &str, form: &[(&str, &str)]) -> Answer {
        let ask = self.yard.post(path, form);
        ask.with("alice", &self.cookie).send().await
    }

    async fn upload_body(&self, body: Vec<u8>) -> Answer {
        let ask = self.yard.multipart("/api/files/upload", body);
        ask.with("alice", &self.cookie).send().await
    }

    async fn upload(&self, name: &str, content: &[u8]) -> Answer {
        self.upload_body(form(&[("file", Some(name), content)]))
            .await
    }

    async fn names(&self, path: &str) -> Vec<String> {
        let answer = self
            .get(&format!("/api/files?path={}", encoded(path)))
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let entries = answer.body["entries"].as_array().unwrap();
        let names = entries.iter().map(|entry| entry["name"].as_str().unwrap());
        names.map(str::to_owned).collect()
    }

    async fn download(&self, path: &str) -> (StatusCode, Vec<u8>) {
        let token = self.yard.world.token("alice");
        let request = warp::test::request()
            .path(&format!("/api/files/download?path={}", encoded(path)))
            .header("cookie", &self.cookie)
            .header("x-csrf-token", token);
        let response = self.yard.raw(request).await;
        (response.status(), response.body().to_vec())
    }

    fn entries(&self) -> usize {
        fs::read_dir(self.at("")).unwrap().count()
    }
}

#[tokio::test]
async fn a_new_users_listing_is_empty_and_never_missing() {
    let yard = yard().await;
    let cookie = yard.sign_in("bob").await;
    let list = async |path: &str| yard.get(path).with("bob", &cookie).send().await;
    let answer = list("/api/files").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.body["entries"], json!([]));
    assert_eq!(answer.body["total"], 0);
    assert_eq!(
        list("/api/files?path=x").await.verdict(),
        (404, "not_found")
    );
    let root = yard.sign_in("root").await;
    for path in [
        "/api/files",
        "/api/files/download?path=x",
        "/api/files/edit?path=x",
    ] {
        let answer = yard.get(path).with("root", &root).send().await;
        assert_eq!(answer.verdict(), (403, "wrong_role"), "{path}");
    }
}

#[tokio::test]
async fn a_change_waits_for_the_workspace_of_a_new_user() {
    let yard = yard().await;
    let cookie = yard.sign_in("bob").await;
    let mkdir = || {
        yard.post("/api/files/mkdir", &[("name", "d")])
            .with("bob", &cookie)
    };
    assert_eq!(mkdir().send().await.verdict(), (503, "busy"));
    let (answer, ()) = futures::join!(mkdir().send(), async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        make_home(&yard, "bob").await;
    });
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[tokio::test]
async fn a_listing_has_all_that_people_and_programs_need() {
    let own = own().await;
    fs::create_dir(own.at("notes")).unwrap();
    fs::write(own.at("notes/b.txt"), "x".repeat(1500)).unwrap();
    symlink("/etc/passwd", own.at("notes/link")).unwrap();
    fs::create_dir(own.at("notes/sub")).unwrap();
    let answer = own.get("/api/files?path=notes%2F&sort=name").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let body = &answer.body;
    assert_eq!(body["path"], "notes");
    assert_eq!(
        body["breadcrumb"],
        json!([{"name": "workspace", "path": ""}, {"name": "notes", "path": "notes"}])
    );
    let entries = body["entries"].as_array().unwrap();
    let shown: Vec<_> = entries
        .iter()
        .map(|entry| {
            (
                entry["rel_path"].as_str().unwrap(),
                entry["type"].as_str().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("notes/sub", "directory"),
        ("notes/b.txt", "file"),
        ("notes/link", "symlink"),
    ];
    assert_eq!(shown, expected);
    assert_eq!(entries[0]["is_dir"], true);
    assert_eq!(
        (&entries[1]["size"], &entries[1]["size_str"]),
        (&json!(1500), &json!("1.5 kB"))
    );
    assert_eq!(entries[1]["mod_time"].as_str().unwrap().len(), 16);
    assert!(entries[1]["modified_at"].as_str().unwrap().ends_with('Z'));
    let page = own
        .get("/api/files?path=notes&page=2&page_size=2&sort=-size")
        .await;
    assert_eq!(page.body["total"], 3);
    assert_eq!(page.body["entries"][0]["name"], "link");
    let found = own.get("/api/files?path=notes&search=B.T").await;
    assert_eq!(found.body["total"], 1);
    let wrong = own.get("/api/files?sort=colour").await;
    assert_eq!(
        (wrong.verdict().0, &wrong.body["field"]),
        (400, &json!("sort"))
    );
    let file = own.get("/api/files?path=notes%2Fb.txt").await;
    assert_eq!(file.verdict(), (409, "not_a_directory"));
}

#[tokio::test]
async fn l23_names_come_back_as_they_went_in() {
    let own = own().await;
    let names = [
        "share",
        "a\"b'c.txt",
        "two\nlines\r.txt",
        "\u{1f600}.png",
        "\u{e9}.txt",
        "e\u{301}.txt",
        "\u{202e}\u{5d0}.txt",
        " blank ",
        "-rf",
        "back\\slash\\",
        "100%.txt",
        "a;b=c&d+e?f#g",
        "CON",
        ".hidden",
        &"n".repeat(255),
    ];
    for name in names {
        let answer = own.upload(name, name.as_bytes()).await;
        assert_eq!(answer.status, 200, "{name:?}: {answer:?}");
        assert_eq!(answer.body["files"][0]["name"], *name);
        let (status, content) = own.download(name).await;
        assert_eq!(
            (status.as_u16(), content.as_slice()),
            (200, name.as_bytes()),
            "{name:?}"
        );
    }
    let listed: BTreeSet<String> = own.names("").await.into_iter().collect();
    assert_eq!(listed, names.into_iter().map(str::to_owned).collect());
    for name in names {
        let deleted = own.post("/api/files/delete", &[("path", name)]).await;
        assert_eq!(deleted.status, 200, "{name:?}: {deleted:?}");
    }
    assert_eq!(own.names("").await, [".trash"]);
    let trash = own.get("/api/files/trash").await.body["entries"].clone();
    let trash: BTreeSet<_> = trash
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["path"].as_str().unwrap())
        .collect();
    assert_eq!(trash, names.into_iter().collect());
}

#[tokio::test]
async fn l22_the_limit_of_a_file_is_exact_and_what_is_refused_leaves_nothing() {
    const LIMIT: usize = 33_554_432;
    let own = own().await;
    for (length, status) in [(LIMIT - 1, 200), (LIMIT, 200), (LIMIT + 1, 413)] {
        let answer = own.upload(&length.to_string(), &vec![7; length]).await;
        assert_eq!(answer.status, status, "{length}: {}", answer.text);
        if status == 413 {
            assert_eq!(answer.body["limit"], LIMIT);
        }
    }
    assert_eq!(own.entries(), 2);
    let one = ("file", Some("a"), b"x".as_slice());
    let two = ("file", Some("b"), b"y".as_slice());
    let (good, half) = (form(&[one, two]), form(&[one]));
    let cut = good[..good.len() - 12].to_vec();
    let outside = form(&[("file", Some("../x"), b"x".as_slice())]);
    let twice = form(&[one, one]);
    let many: Vec<_> = (0..101).map(|n| n.to_string()).collect();
    let many: Vec<_> = many
        .iter()
        .map(|n| ("file", Some(n.as_str()), b"x".as_slice()))
        .collect();
    for body in [
        cut,
        outside,
        twice,
        form(&many),
        form(&[("path", None, b"".as_slice())]),
    ] {
        let answer = own.upload_body(body).await;
        assert_eq!(answer.status, 400, "{}", answer.text);
    }
    fs::write(own.at("b"), "old").unwrap();
    let answer = own.upload_body(good.clone()).await;
    assert_eq!(
        answer.verdict(),
        (409, "already_exists"),
        "all of them, or none"
    );
    assert_eq!(own.entries(), 3);
    let mut overwriting = part("overwrite", None, b"true");
    overwriting.extend_from_slice(&good);
    assert_eq!(own.upload_body(overwriting).await.status, 200);
    assert_eq!(fs::read(own.at("b")).unwrap(), b"y");
    // The fields may come after the files.
    let later = [
        ("file", Some("c"), b"z".as_slice()),
        ("path", None, b"none".as_slice()),
    ];
    assert_eq!(
        own.upload_body(form(&later)).await.verdict(),
        (404, "not_found")
    );
    assert_eq!(
        own.upload_body(half).await.verdict(),
        (409, "already_exists")
    );
    assert_eq!(own.entries(), 4);
}

#[tokio::test]
async fn an_upload_takes_effect_only_with_a_valid_token() {
    let own = own().await;
    let token = own.yard.world.token("alice");
    for (token, status) in [("wrong", 403), (token.as_str(), 200)] {
        let body = form(&[
            ("file", Some("a"), b"x".as_slice()),
            ("csrf_token", None, token.as_bytes()),
        ]);
        let ask = own.yard.multipart("/api/files/upload", body);
        let answer = ask.header("cookie", &own.cookie).send().await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(own.entries(), usize::from(status == 200));
    }
}

#[tokio::test]
async fn parts_of_a_file_and_what_the_client_has_are_answered_as_http_says() {
    let own = own().await;
    fs::write(own.at("f"), "0123456789").unwrap();
    fs::write(own.at("empty"), "").unwrap();
    let whole = own.get("/api/files/download?path=f").await;
    assert_eq!(
        (whole.status.as_u16(), whole.text.as_str()),
        (200, "0123456789")
    );
    let header = |answer: &Answer, name: &str| {
        let value = answer
            .headers
            .get(name)
            .map(|value| value.to_str().unwrap().to_owned());
        value.unwrap_or_default()
    };
    assert_eq!(header(&whole, "content-length"), "10");
    assert_eq!(header(&whole, "accept-ranges"), "bytes");
    assert_eq!(header(&whole, "content-type"), "application/octet-stream");
    let etag = header(&whole, "etag");
    let modified = header(&whole, "last-modified");
    let ask = async |headers: &[(&str, &str)]| {
        let mut ask = own.yard.get("/api/files/download?path=f");
        for (name, value) in headers {
            ask = ask.header(name, value);
        }
        ask.with("alice", &own.cookie).send().await
    };
    for (range, status, text, content_range) in [
        ("bytes=0-3", 206, "0123", "bytes 0-3/10"),
        ("bytes=8-", 206, "89", "bytes 8-9/10"),
        ("bytes=-3", 206, "789", "bytes 7-9/10"),
        ("bytes=5-100", 206, "56789", "bytes 5-9/10"),
        ("bytes=-100", 206, "0123456789", "bytes 0-9/10"),
        ("bytes=0-1,4-5", 200, "0123456789", ""),
        ("lines=1-2", 200, "0123456789", ""),
        ("bytes=x", 200, "0123456789", ""),
        ("bytes=3-1", 200, "0123456789", ""),
        ("bytes=+1-2", 200, "0123456789", ""),
        ("bytes=9-99999999999999999999", 206, "9", "bytes 9-9/10"),
    ] {
        let answer = ask(&[("range", range)]).await;
        assert_eq!(
            (
                answer.status.as_u16(),
                answer.text.as_str(),
                header(&answer, "content-range").as_str()
            ),
            (status, text, content_range),
            "{range}"
        );
    }
    for range in ["bytes=10-", "bytes=10-12", "bytes=-0"] {
        let beyond = ask(&[("range", range)]).await;
        assert_eq!(beyond.verdict(), (416, "range_not_satisfiable"), "{range}");
        assert_eq!(header(&beyond, "content-range"), "bytes */10");
    }
    let same = ask(&[("if-none-match", &etag)]).await;
    assert_eq!((same.status.as_u16(), same.text.as_str()), (304, ""));
    for (validator, status) in [
        (etag.as_str(), 206),
        (modified.as_str(), 206),
        ("\"other\"", 200),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 200),
    ] {
        let answer = ask(&[("range", "bytes=0-0"), ("if-range", validator)]).await;
        assert_eq!(answer.status, status, "{validator}");
    }
    let old = std::time::SystemTime::UNIX_EPOCH - std::time::Duration::from_secs(1000);
    fs::write(own.at("old"), "old").unwrap();
    fs::File::options()
        .write(true)
        .open(own.at("old"))
        .unwrap()
        .set_modified(old)
        .unwrap();
    assert_eq!(own.get("/api/files/download?path=old").await.text, "old");
    fs::write(own.at("f"), "another").unwrap();
    assert_eq!(ask(&[("if-none-match", &etag)]).await.text, "another");
    let empty = own.get("/api/files/download?path=empty").await;
    assert_eq!(
        (
            empty.status.as_u16(),
            header(&empty, "content-length").as_str()
        ),
        (200, "0")
    );
    let head = own.yard.get("/api/files/download?path=f").method("HEAD");
    let head = head.with("alice", &own.cookie).send().await;
    assert_eq!(
        (head.text.as_str(), header(&head, "content-length").as_str()),
        ("", "7")
    );
}

#[tokio::test]
async fn a_directory_is_downloaded_as_a_zip_file() {
    let own = own().await;
    fs::create_dir_all(own.at("d/e")).unwrap();
    fs::write(own.at("d/e/f"), "content").unwrap();
    for (path, name) in [("d", "d/e/f"), ("", "workspace/d/e/f")] {
        let (status, bytes) = own.download(path).await;
        assert_eq!(status, 200);
        let mut zip = zip::ZipArchive::new(std::io::Cursor::new(bytes)).unwrap();
        let mut content = String::new();
        let mut file = zip.by_name(name).unwrap();
        std::io::Read::read_to_string(&mut file, &mut content).unwrap();
        assert_eq!(content, "content");
    }
}

#[tokio::test]
async fn scripts_sent_as_multipart_keep_their_line_ends() {
    let own = own().await;
    fs::write(own.at("old.bat"), "dir\r\n").unwrap();
    let save = async |path: &str, content: &[u8]| {
        let body = form(&[("path", None, path.as_bytes()), ("content", None, content)]);
        let ask = own.yard.multipart("/api/files/edit", body);
        let saved = ask.with("alice", &own.cookie).send().await;
        assert_eq!(saved.status, 200, "{saved:?}");
        let saved = saved.body["message"].as_str().unwrap();
        (
            fs::read_to_string(own.at(path)).unwrap(),
            saved.contains("saved as line feeds"),
        )
    };
    let script = b"#!/bin/sh\r\necho 1\r\n";
    for (path, sent, kept, noted) in [
        ("run.sh", script.as_slice(), "#!/bin/sh\necho 1\n", true),
        ("old.bat", b"cd\r\ndir\r\n", "cd\r\ndir\r\n", false),
        ("mixed", b"a\r\nb\n", "a\r\nb\n", false),
        ("old.bat", b"cd\ndir\n", "cd\ndir\n", false),
    ] {
        assert_eq!(save(path, sent).await, (kept.to_owned(), noted), "{path}");
    }
}

#[tokio::test]
async fn l24_texts_are_edited_and_nothing_else_is() {
    let own = own().await;
    let save = async |form: &[(&str, &str)]| own.post("/api/files/edit", form).await;
    let text = "a\r\nb\u{1f600}\n";
    let saved = save(&[("path", "t.unknown"), ("content", text)]).await;
    assert_eq!(saved.status, 200, "{saved:?}");
    let read = own.get("/api/files/edit?path=t.unknown").await;
    assert_eq!(read.body["content"], text);
    assert_eq!(read.body["filename"], "t.unknown");
    let etag = read.body["etag"].as_str().unwrap();
    assert_eq!(saved.body["etag"], etag);
    let again = [("path", "t.unknown"), ("content", "new"), ("etag", etag)];
    assert_eq!(save(&again).await.status, 200);
    assert_eq!(save(&again).await.verdict(), (412, "stale_file"));
    assert_eq!(fs::read_to_string(own.at("t.unknown")).unwrap(), "new");
    let whole = "a".repeat(1024 * 1024);
    assert_eq!(
        save(&[("path", "l"), ("content", &whole)]).await.status,
        200
    );
    let long = format!("{whole}a");
    let refused = save(&[("path", "l"), ("content", &long)]).await;
    assert_eq!(refused.verdict(), (415, "unsupported_media_type"));
    fs::write(own.at("binary.txt"), b"\xff\x00").unwrap();
    let refused = own.get("/api/files/edit?path=binary.txt").await;
    assert_eq!(refused.verdict(), (415, "unsupported_media_type"));
    let body = [("path", "x".to_owned()), ("content", "%".repeat(1_500_000))];
    let body: Vec<_> = body
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    assert_eq!(save(&body).await.verdict(), (413, "too_large"));
}

#[tokio::test]
async fn entries_are_made_moved_and_deleted() {
    let own = own().await;
    let post = async |path: &str, form: &[(&str, &str)]| {
        let answer = own.post(path, form).await;
        let (status, code) = answer.verdict();
        (status, code.to_owned())
    };
    let ok = (200, String::new());
    let is = |status: u16, code: &str| (status, code.to_owned());
    assert_eq!(post("/api/files/mkdir", &[("name", "a")]).await, ok);
    assert_eq!(
        post("/api/files/mkdir", &[("path", "a"), ("name", "b")]).await,
        ok
    );
    let again = post("/api/files/mkdir", &[("name", "a")]).await;
    assert_eq!(again, is(409, "already_exists"));
    let nowhere = post("/api/files/mkdir", &[("path", "x"), ("name", "b")]).await;
    assert_eq!(nowhere, is(404, "not_found"));
    let slash = post("/api/files/mkdir", &[("name", "a/b")]).await;
    assert_eq!(slash, is(400, "invalid_parameter"));
    assert_eq!(
        post("/api/files/move", &[("from", "a/b"), ("to", "c")]).await,
        ok
    );
    let taken = post("/api/files/move", &[("from", "a"), ("to", "c")]).await;
    assert_eq!(taken, is(409, "already_exists"));
    let inside = post("/api/files/move", &[("from", "a"), ("to", "a/x")]).await;
    assert_eq!(inside, is(400, "invalid_parameter"));
    for top in ["", "/", "."] {
        let deleted = post("/api/files/delete", &[("path", top)]).await;
        assert_eq!(deleted, is(400, "invalid_parameter"), "{top:?}");
    }
    assert_eq!(post("/api/files/delete", &[("path", "a")]).await, ok);
    assert_eq!(
        post("/api/files/delete", &[("path", "a")]).await,
        is(404, "not_found")
    );
    assert_eq!(own.names("").await, [".trash", "c"]);
}

#[tokio::test]
async fn a_name_that_is_not_utf8_is_one_like_others() {
    let own = own().await;
    let name = |bytes: &[u8]| own.at("").join(OsStr::from_bytes(bytes));
    // As old archives and Windows tools leave them, and what looks like the text of such a name.
    fs::write(name(b"r\xe9sum.txt"), "latin").unwrap();
    fs::create_dir(name(b"\xc4\xe3")).unwrap();
    fs::write(name("r\u{efe9}sum.txt".as_bytes()), "private").unwrap();
    let list = async || {
        let listed = own.get("/api/files").await.body;
        let entries = listed["entries"].as_array().unwrap().iter();
        let pair =
            |entry: &Value| ["name", "rel_path"].map(|key| entry[key].as_str().unwrap().to_owned());
        entries
            .map(pair)
            .filter(|[name, _]| name != ".trash")
            .collect::<Vec<_>>()
    };
    let [folder, private, latin] = list().await.try_into().unwrap();
    assert_eq!(latin, ["r\u{fffd}sum.txt", "r\u{efe9}sum.txt"]);
    assert_eq!(private[0], "r\u{efe9}sum.txt");
    let inside = form(&[
        ("path", None, folder[1].as_bytes()),
        ("file", Some("x"), b"in"),
    ]);
    assert_eq!(own.upload_body(inside).await.status, 200);
    assert_eq!(fs::read(name(b"\xc4\xe3").join("x")).unwrap(), b"in");
    let text = async |path: &str| {
        let edited = own
            .get(&format!("/api/files/edit?path={}", encoded(path)))
            .await;
        edited.body["content"].as_str().unwrap().to_owned()
    };
    assert_eq!(text(&latin[1]).await, "latin");
    assert_eq!(text(&private[1]).await, "private");
    let deleted = own.post("/api/files/delete", &[("path", &latin[1])]).await;
    let id = deleted.body["trash_id"].as_str().unwrap().to_owned();
    assert!(!name(b"r\xe9sum.txt").exists());
    own.post("/api/files/restore", &[("id", &id)]).await;
    assert_eq!(fs::read(name(b"r\xe9sum.txt")).unwrap(), b"latin");
    let moved = [("from", &*latin[1]), ("to", "r\u{e9}sum.txt")];
    assert_eq!(own.post("/api/files/move", &moved).await.status, 200);
    for path in [&folder[1], &private[1]] {
        let form = [("path", path.as_str()), ("permanent", "1")];
        assert_eq!(own.post("/api/files/delete", &form).await.status, 200);
    }
    assert_eq!(own.names("").await, [".trash", "r\u{e9}sum.txt"]);
}

/// Paths of all kinds that should lead nowhere, or not where they seem to.
fn hostile() -> Vec<String> {
    let places = [
        "etc/passwd",
        "proc/self/environ",
        "proc/self/root/etc/passwd",
        "proc/self/cwd",
        "dev/zero",
        "sys/kernel",
        "root/.ssh/id_rsa",
        "",
        "..",
        "secret",
    ];
    let ways = [
        "/",
        "//",
        "../",
        "../../",
        "../../../../../../../../",
        "./../",
        "a/../../",
        "a/./../../../",
        "..\\",
        "..\\..\\",
        "%2e%2e/",
        "%2e%2e%2f",
        "..%2f",
        "..%5c",
        "%c0%ae%c0%ae/",
        "..%c0%af",
        "....//",
        ".../",
        "..;/",
        "file:///",
        "\\\\server\\share\\",
        "C:\\",
        "C:/",
        "~/",
        "~root/",
        "\u{ff0e}\u{ff0e}/",
        "\u{2024}\u{2024}/",
        "link/",
        "link/../",
        "self/",
        "dir/../link/",
        "dir/link/",
        "fifo/",
        "f/",
    ];
    let mut paths: Vec<String> = Vec::new();
    for way in ways {
        for place in places {
            paths.push(format!("{way}{place}"));
            paths.push(format!("dir/{way}{place}"));
        }
    }
    let names = [
        "CON",
        "NUL.txt",
        "aux",
        "COM1",
        "a:b",
        "a|b",
        "a<b>",
        "trailing. ",
        "\u{202e}txt.exe",
        "\u{feff}x",
        "\u{200b}",
        "a\nb",
        "a\rb",
        "a\tb",
        "\u{1b}[31m",
        "\u{7f}",
        "\u{0}",
        "a\u{0}b",
        "e\u{301}",
        "\u{1f468}\u{200d}",
        "' OR 1=1 --",
        "$(reboot)",
        "`id`",
        "{{7*7}}",
        "<script>",
        "-rf",
        "*",
        "?",
        "[a-z]",
        "%00",
        "%n%s",
    ];
    paths.extend(names.iter().map(|name| (*name).to_owned()));
    for length in [255, 256, 4095, 4096, 4097, 20_000] {
        paths.push("n".repeat(length));
        paths.push("d/".repeat(length / 2));
    }
    paths
}

#[tokio::test]
async fn l25_no_path_leads_out_and_none_is_the_services_fault() {
    let own = own().await;
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret-of-the-host").unwrap();
    fs::create_dir(own.at("dir")).unwrap();
    for link in ["link", "dir/link"] {
        symlink(outside.path(), own.at(link)).unwrap();
    }
    symlink("/proc/self", own.at("self")).unwrap();
    fs::write(own.at("f"), "f").unwrap();
    let paths = hostile();
    assert!(paths.len() > 500, "{}", paths.len());
    // Each path is sent to every route at full count; otherwise to two that read, and to the others by turns.
    let all = std::env::var_os("AGENTYARD_TEST_LONG").is_some();
    for (number, path) in paths.iter().enumerate() {
        let query = encoded(path);
        let mut answers = Vec::new();
        for route in ["/api/files", "/api/files/download"] {
            answers.push(own.get(&format!("{route}?path={query}")).await);
        }
        let turn = |which: usize| all || number % 9 == which;
        if turn(0) {
            answers.push(own.get(&format!("/api/files/edit?path={query}")).await);
        }
        let forms = [
            (
                "/api/files/edit",
                vec![("path", path.as_str()), ("content", "mine")],
            ),
            (
                "/api/files/mkdir",
                vec![("path", path.as_str()), ("name", "made")],
            ),
            ("/api/files/mkdir", vec![("name", path.as_str())]),
            (
                "/api/files/move",
                vec![("from", path.as_str()), ("to", "moved")],
            ),
            (
                "/api/files/move",
                vec![("from", "f"), ("to", path.as_str())],
            ),
            ("/api/files/delete", vec![("path", path.as_str())]),
        ];
        for (which, (route, form)) in forms.into_iter().enumerate() {
            if turn(which + 1) {
                answers.push(own.post(route, &form).await);
            }
        }
        if turn(7) {
            answers.push(own.upload(path, b"mine").await);
        }
        if turn(8) {
            let into = [
                ("path", None, path.as_bytes()),
                ("file", Some("up"), b"mine".as_slice()),
            ];
            answers.push(own.upload_body(form(&into)).await);
        }
        for answer in answers {
            assert!(answer.status.as_u16() < 500, "{path:?}: {answer:?}");
            assert!(!answer.text.contains("secret-of-the-host"), "{path:?}");
            assert!(!answer.text.contains("root:x:0"), "{path:?}");
        }
        // What the requests need is recreated if one of them was right to take it.
        fs::write(own.at("f"), "f").unwrap();
    }
    let left: Vec<_> = fs::read_dir(outside.path()).unwrap().collect();
    assert_eq!(left.len(), 1);
    let secret = fs::read_to_string(outside.path().join("secret")).unwrap();
    assert_eq!(secret, "secret-of-the-host");
}

#[tokio::test]
async fn the_trail_records_that_something_was_changed_but_not_the_names_of_files() {
    let own = own().await;
    own.upload("private-name", b"12345").await;
    own.post(
        "/api/files/move",
        &[("from", "private-name"), ("to", "other")],
    )
    .await;
    // A file system of its own cannot be removed: what is in it is.
    let mounted = own.at("dir/mounted");
    std::fs::create_dir_all(&mounted).unwrap();
    let mount = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "tmpfs"])
        .arg(&mounted)
        .status();
    assert!(mount.unwrap().success(), "mounting needs root");
    let permanent = [("path", "dir"), ("permanent", "1")];
    let partly = own.post("/api/files/delete", &permanent).await;
    let unmount = std::process::Command::new("umount").arg(&mounted).status();
    assert!(unmount.unwrap().success());
    assert_eq!(partly.verdict(), (409, "changed_meanwhile"));
    let mut connection = own.yard.world.db.read().await.unwrap();
    let trail = audit::following(&mut connection, 0, 100).await.unwrap();
    let entries: Vec<_> = trail
        .iter()
        .map(|record| {
            (
                record.entry.action.as_str(),
                record.entry.object.as_str(),
                record.entry.outcome.as_str(),
                record.entry.detail.as_str(),
            )
        })
        .filter(|(action, ..)| action.starts_with("files"))
        .collect();
    let expected = [
        (
            "files_upload",
            "workspace/alice",
            "ok",
            "files: 1, bytes: 5",
        ),
        ("files_move", "workspace/alice", "ok", ""),
        ("files_delete", "workspace/alice", "ok", "permanent"),
        ("files_delete", "workspace/alice", "failed", ""),
    ];
    assert_eq!(entries, expected);
}

#[tokio::test]
async fn nobody_reaches_the_files_of_others() {
    let own = own().await;
    make_home(&own.yard, "bob").await;
    own.upload("mine", b"x").await;
    let bob = own.yard.sign_in("bob").await;
    let list = own.yard.get("/api/files").with("bob", &bob).send().await;
    assert_eq!(list.body["total"], 0);
    for path in ["mine", "../../../alice/.agent/workspace/mine"] {
        let path = format!("/api/files/download?path={}", encoded(path));
        let answer = own.yard.get(&path).with("bob", &bob).send().await;
        assert!([400, 404].contains(&answer.status.as_u16()), "{answer:?}");
    }
    assert_eq!(
        own.get("/api/files").await.body["entries"][0]["name"],
        Value::from("mine")
    );
}

#[tokio::test]
async fn a_quota_holds_also_between_two_measurements() {
    let own = own().await;
    let settings = crate::settings::WebSettings {
        quota: Quota {
            megabytes: 1,
            files: 9,
            stops: false,
        },
        ..crate::settings::WebSettings::default()
    };
    own.yard
        .world
        .settings
        .send_replace(std::sync::Arc::new(settings));
    let mib = 1024 * 1024;
    assert_eq!(own.upload("a", &vec![0; mib / 2]).await.status, 200);
    // What is refused takes nothing.
    for _ in 0..3 {
        let refused = own.upload("b", &vec![0; mib / 2 + 1]).await;
        assert_eq!(refused.verdict(), (507, "quota_exceeded"), "{refused:?}");
        let why = refused.body["error"].as_str().unwrap();
        let said = "your files take 0.5 MiB and may take 1 MiB (files.quota_mb); remove files";
        assert!(why.starts_with(said), "{why}");
    }
    assert_eq!(own.upload("c", &vec![0; mib / 2]).await.status, 200);
    let saved = own
        .post("/api/files/edit", &[("path", "t"), ("content", "x")])
        .await;
    assert_eq!(saved.verdict(), (507, "quota_exceeded"));
    assert_eq!(own.names("").await, ["a", "c"]);
    // A measurement that finds less makes room.
    let uid = own.yard.find("alice").await.unwrap().uid;
    let measure = async |entries| {
        let measured = schema::home::Measured {
            bytes: mib as u64 - 1,
            files: 1,
            entries,
            ..schema::home::Measured::default()
        };
        let mut tx = own.yard.tx().await;
        let attempt = schema::usage::Attempt {
            uid: uid.clone(),
            changes: 2,
            outcome: Ok(measured),
        };
        let at = crate::testing::NOW.plus(std::time::Duration::from_secs(10));
        let saved = schema::usage::save(&mut tx, &[attempt], at).await;
        saved.unwrap();
        tx.commit().await.unwrap();
    };
    measure(9).await;
    let refused = own.upload("d", b"").await;
    assert_eq!(refused.verdict(), (507, "quota_exceeded"), "{refused:?}");
    let why = refused.body["error"].as_str().unwrap();
    let said = "your files take 9 files and directories and may take 9 (files.quota_files)";
    assert!(why.starts_with(said), "{why}");
    measure(8).await;
    let saved = own
        .post("/api/files/edit", &[("path", "t"), ("content", "x")])
        .await;
    assert_eq!(saved.status, 200, "{saved:?}");
    let listed = own.get("/api/files").await;
    assert_eq!(
        (&listed.body["quota_mb"], &listed.body["usage"]["files"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(
        (
            &listed.body["quota_files"],
            &listed.body["usage"]["entries"]
        ),
        (&json!(9), &json!(8))
    );
}

#[tokio::test]
async fn l63_what_a_parser_cannot_end_is_not_collected() {
    let own = own().await;
    let mut endless = b"--X\r\nA: ".to_vec();
    endless.resize(8 * 1024 * 1024, b'a');
    let answer = own.upload_body(endless).await;
    assert_eq!(answer.verdict(), (400, "invalid_body"));
    let many: Vec<String> = (0..10).map(|n| n.to_string()).collect();
    let text = vec![b'a'; 60 * 1024];
    let many: Vec<_> = many
        .iter()
        .map(|name| (name.as_str(), None, text.as_slice()))
        .collect();
    assert_eq!(
        own.upload_body(form(&many)).await.verdict(),
        (400, "invalid_body")
    );
    assert_eq!(own.entries(), 0);
}

#[tokio::test]
async fn deleted_files_come_back_from_the_trash() {
    let own = own().await;
    assert_eq!(own.get("/api/files/trash").await.body["entries"], json!([]));
    own.post("/api/files/mkdir", &[("name", "notes")]).await;
    let edit = [("path", "notes/todo"), ("content", "text")];
    own.post("/api/files/edit", &edit).await;
    let path = [("path", "notes/todo")];
    let deleted = own.post("/api/files/delete", &path).await;
    let id = deleted.body["trash_id"].as_str().unwrap().to_owned();
    let listed = own.get("/api/files/trash?search=NOTES").await.body;
    let entry = &listed["entries"][0];
    assert_eq!((&listed["total"], &entry["id"]), (&json!(1), &json!(id)));
    assert_eq!(
        (&entry["path"], &entry["name"], &entry["size"]),
        (&json!("notes/todo"), &json!("todo"), &json!(4))
    );
    assert_eq!(entry["removed_after"], "2026-05-18T11:46:40Z");
    own.post("/api/files/edit", &edit).await;
    let back = async |form: &[(&str, &str)]| own.post("/api/files/restore", form).await;
    assert_eq!(
        back(&[("id", &id)]).await.verdict(),
        (409, "already_exists")
    );
    assert_eq!(
        back(&[("id", &id), ("to", "/")]).await.verdict(),
        (400, "invalid_parameter")
    );
    let restored = back(&[("id", &id), ("to", "new/todo")]).await;
    assert_eq!(
        (restored.status.as_u16(), &restored.body["path"]),
        (200, &json!("new/todo"))
    );
    assert_eq!(back(&[("id", &id)]).await.verdict(), (404, "not_found"));
    for path in [".trash", ".trash/x"] {
        let refused = own.post("/api/files/delete", &[("path", path)]).await;
        assert_eq!(refused.verdict(), (400, "invalid_parameter"));
        assert_eq!(refused.body["field"], "permanent");
    }
    let permanent = [("path", "new"), ("permanent", "1")];
    let gone = own.post("/api/files/delete", &permanent).await;
    assert_eq!(
        (gone.status.as_u16(), &gone.body["trash_id"]),
        (200, &Value::Null)
    );
    assert_eq!(own.get("/api/files/trash").await.body["total"], 0);
}

#[tokio::test]
async fn listing_without_a_page_is_whole_up_to_a_bound() {
    let own = own().await;
    for (count, shown, truncated) in [(45, 45, false), (10_050, 10_000, true)] {
        let folder = format!("of-{count}");
        fs::create_dir(own.at(&folder)).unwrap();
        for n in 0..count {
            fs::write(own.at(&format!("{folder}/{n:05}")), "").unwrap();
        }
        let answer = own.get(&format!("/api/files?path={folder}")).await;
        let body = &answer.body;
        let entries = body["entries"].as_array().unwrap();
        assert_eq!(
            (entries.len(), &body["truncated"]),
            (shown, &json!(truncated))
        );
        assert_eq!(
            (&body["total"], &body["page_size"]),
            (&json!(count), &json!(count))
        );
        assert_eq!(entries[shown - 1]["name"], format!("{:05}", shown - 1));
        // With any of the parameters of a page, it is one.
        let page = own.get(&format!("/api/files?path={folder}&page=1")).await;
        assert_eq!(page.body["entries"].as_array().unwrap().len(), 20);
        assert_eq!(page.body["truncated"], false);
    }
}

#[tokio::test]
async fn listing_of_long_paths_is_bounded_by_its_text() {
    let own = own().await;
    let deep = vec!["d".repeat(250); 12].join("/");
    fs::create_dir_all(own.at(&deep)).unwrap();
    for n in 0..3000 {
        fs::write(own.at(&format!("{deep}/{n:05}")), "").unwrap();
    }
    let answer = own.get(&format!("/api/files?path={deep}")).await;
    let shown = answer.body["entries"].as_array().unwrap().len();
    assert!((2500..3000).contains(&shown), "{shown}");
    assert_eq!(answer.body["truncated"], true);
    assert_eq!(answer.body["total"], 3000);
}
