use std::collections::HashMap;

use http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, ETAG, IF_NONE_MATCH,
};
use http_body_util::BodyExt;
use rstest::rstest;

use super::language::Language;
use super::*;

struct Built(HashMap<&'static str, &'static str>);

impl ConsoleFiles for Built {
    fn file(&self, path: &str) -> Option<Bytes> {
        self.0
            .get(path)
            .map(|text| Bytes::from_static(text.as_bytes()))
    }
}

fn console() -> Console {
    let page =
        "<html lang=\"{{lang}}\"><link rel=\"stylesheet\" href=\"{{prefix}}/assets/theme-1.css\">";
    let files = HashMap::from([
        ("login.html", page),
        (
            "index.html",
            "<script src=\"{{prefix}}/assets/app-1.js\"></script>",
        ),
        ("assets/app-1.js", "plain"),
        ("assets/app-1.js.br", "brotli"),
        ("assets/app-1.js.gz", "gzip"),
        ("assets/app-1.js.map", "no file of the console"),
        ("assets/mark-1.svg", "<svg/>"),
    ]);
    Console::new(Arc::new(Built(files))).unwrap()
}

async fn request_page(
    method: Method,
    target: &str,
    headers: &[(&str, &str)],
    viewer: Viewer,
) -> Result<Response> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let headers = headers.iter().map(|(name, value)| {
        let name: http::HeaderName = name.parse().unwrap();
        (name, value.parse().unwrap())
    });
    let headers: HeaderMap = headers.collect();
    let asked = Asked {
        method: &method,
        path,
        query,
        headers: &headers,
        prefix: "/yard",
    };
    let place = place_of(path).unwrap();
    console().answer(place, &asked, async { viewer }).await
}

async fn text(response: Response) -> String {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.into()).unwrap()
}

#[rstest]
#[case("/", Viewer::Guest, "/yard/login")]
#[case("/manage", Viewer::Guest, "/yard/login?next=/manage")]
#[case(
    "/admin/users?ready=false&name=a",
    Viewer::Guest,
    "/yard/login?next=/admin/users%3Fready%3Dfalse%26name%3Da"
)]
#[case("/manage", Viewer::Account(Role::Superadmin), "/yard/admin/dashboard")]
#[case(
    "/initializing",
    Viewer::Account(Role::Superadmin),
    "/yard/admin/dashboard"
)]
#[case("/admin/users/bob/log", Viewer::Account(Role::User), "/yard/manage")]
#[case("/admin", Viewer::Account(Role::Superadmin), "/yard/admin/dashboard")]
#[case("/login", Viewer::Account(Role::Superadmin), "/yard/admin/dashboard")]
#[case(
    "/login?next=/manage/files%3Fpath%3Da",
    Viewer::Account(Role::User),
    "/yard/manage/files?path=a"
)]
#[case(
    "/login?next=//elsewhere.example",
    Viewer::Account(Role::User),
    "/yard/manage"
)]
#[case(
    "/login?next=/%5Celsewhere.example",
    Viewer::Account(Role::User),
    "/yard/manage"
)]
#[case(
    "/login?next=https://elsewhere.example",
    Viewer::Account(Role::User),
    "/yard/manage"
)]
#[tokio::test]
async fn viewer_is_sent_to_the_own_pages(
    #[case] target: &str,
    #[case] viewer: Viewer,
    #[case] to: &str,
) {
    let response = request_page(Method::GET, target, &[], viewer)
        .await
        .unwrap();
    assert_eq!(response.status(), 302);
    assert_eq!(response.headers()[LOCATION], to);
    assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
}

#[rstest]
#[case("/login", Viewer::Guest)]
#[case("/manage/files", Viewer::Account(Role::User))]
#[case("/admin/users/", Viewer::Account(Role::Superadmin))]
#[case("/admin/users", Viewer::Unknown)]
#[tokio::test]
async fn page_has_its_prefix_policy_and_tag(#[case] target: &str, #[case] viewer: Viewer) {
    let response = request_page(Method::GET, target, &[], viewer)
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    let policy = response.headers()[CONTENT_SECURITY_POLICY]
        .to_str()
        .unwrap();
    assert!(!policy.contains("unsafe") && policy.contains("default-src 'none'"));
    let tag = response.headers()[ETAG].to_str().unwrap().to_owned();
    let html = text(response).await;
    assert!(
        html.contains("\"/yard/assets/") && !html.contains("{{"),
        "{html}"
    );

    let known = [(IF_NONE_MATCH.as_str(), &*tag)];
    let response = request_page(Method::GET, target, &known, viewer)
        .await
        .unwrap();
    assert_eq!(response.status(), 304);
    assert_eq!(text(response).await, "");
}

#[rstest]
#[case("gzip, deflate, br, zstd", Some("br"), "brotli")]
#[case("gzip", Some("gzip"), "gzip")]
#[case("br;q=0, *", Some("gzip"), "gzip")]
#[case("identity", None, "plain")]
#[case("", None, "plain")]
#[tokio::test]
async fn asset_is_compressed_as_the_client_takes_it(
    #[case] accepted: &str,
    #[case] encoding: Option<&str>,
    #[case] body: &str,
) {
    let headers = [(ACCEPT_ENCODING.as_str(), accepted)];
    let response = request_page(Method::GET, "/assets/app-1.js", &headers, Viewer::Guest);
    let response = response.await.unwrap();
    let found = response.headers().get(CONTENT_ENCODING);
    assert_eq!(found.map(|value| value.to_str().unwrap()), encoding);
    let cached = response.headers()[CACHE_CONTROL].to_str().unwrap();
    assert!(cached.contains("immutable"), "{cached}");
    assert_eq!(text(response).await, body);
}

#[rstest]
#[case("/assets/app-2.js")]
#[case("/assets/app-1.js.map")]
#[case("/assets/app-1.js.br")]
#[case("/assets/../login.html")]
#[case("/assets/")]
#[tokio::test]
async fn missing_asset_is_no_page(#[case] target: &str) {
    let error = request_page(Method::GET, target, &[], Viewer::Guest)
        .await
        .err();
    assert_eq!(error.unwrap().status(), 404);
}

#[tokio::test]
async fn other_methods_are_refused() {
    let error = request_page(Method::POST, "/login", &[], Viewer::Guest)
        .await
        .err();
    assert_eq!(error.unwrap().status(), 405);
    let options = request_page(Method::OPTIONS, "/manage", &[], Viewer::Guest).await;
    assert_eq!(options.unwrap().status(), 204);
}

#[test]
fn long_address_is_not_come_back_to() {
    let path = format!("/admin/{}", "x".repeat(1000));
    assert_eq!(place::sign_in_and_return(&path, ""), "/login");
}

#[rstest]
#[case("zh-CN,zh;q=0.9,en;q=0.8", Some(Language::Chinese))]
#[case("de-DE, en-GB;q=0.7, zh;q=0.3", Some(Language::English))]
#[case("fr", None)]
#[case("zh;q=0, en;q=x", None)]
fn language_is_the_preferred_of_both(#[case] accepted: &str, #[case] found: Option<Language>) {
    assert_eq!(language::preferred(accepted), found);
}

#[rstest]
#[case("/api/health")]
#[case("/administrators")]
#[case("/loginx")]
#[case("/healthz")]
fn other_paths_are_no_place(#[case] path: &str) {
    assert_eq!(place_of(path), None);
}

#[test]
fn styles_are_those_of_the_sign_in() {
    assert_eq!(console().styles(), ["/assets/theme-1.css"]);
    let files = Built(HashMap::from([("login.html", "")]));
    let error = Console::new(Arc::new(files)).err().unwrap();
    assert_eq!(
        error.to_string(),
        "the console was built without index.html"
    );
}
