//! Answers that no directory gives: each ends its connection with a reason, and nothing else.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use reconcilers::drivers::ldap::{
    Directory, DirectoryError, DirectorySettings, GroupSearch, ID_ATTRIBUTES_OF_SERVERS, Wanted,
};
use rstest::rstest;
use secrecy::SecretString;

use super::directory;

/// An element of BER with any length.
pub fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag, 0x84];
    bytes.extend(u32::try_from(content.len()).unwrap().to_be_bytes());
    bytes.extend(content);
    bytes
}

/// The answer to request `id`; what stands behind the operation are controls.
pub fn message(id: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut content = element(0x02, &[id]);
    content.extend(parts.concat());
    element(0x30, &content)
}

pub fn result(tag: u8, text: &[u8]) -> Vec<u8> {
    let parts = [element(0x0a, &[0]), element(0x04, b""), element(0x04, text)];
    element(tag, &parts.concat())
}

fn entry(name: &[u8]) -> Vec<u8> {
    entry_with(name, &[(b"uid", &[b"ann"])])
}

/// An entry with these attributes and their values.
pub fn entry_with(name: &[u8], attributes: &[(&[u8], &[&[u8]])]) -> Vec<u8> {
    let attributes = attributes.iter().map(|(kind, values)| {
        let values: Vec<u8> = values.iter().flat_map(|it| element(0x04, it)).collect();
        let parts = [element(0x04, kind), element(0x31, &values)];
        element(0x30, &parts.concat())
    });
    let attributes: Vec<u8> = attributes.flatten().collect();
    let parts = [element(0x04, name), element(0x30, &attributes)];
    element(0x64, &parts.concat())
}

fn nested(depth: usize) -> Vec<u8> {
    (0..depth).fold(Vec::new(), |inner, _| element(0x30, &inner))
}

pub fn controls(control: &[u8]) -> Vec<u8> {
    element(0xa0, &element(0x30, control))
}

/// Serves each connection: lets every client bind, and answers everything else as `answer` says, until the client leaves.
pub fn serve(
    answer: impl Fn(u8, &mut TcpStream) + Send + Sync + Clone + 'static,
) -> DirectorySettings {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let answer = answer.clone();
            thread::spawn(move || converse(&mut stream.unwrap(), &answer));
        }
    });
    DirectorySettings {
        url: format!("ldap://127.0.0.1:{port}").parse().unwrap(),
        start_tls: false,
        ca_certificate: None,
        bind_dn: "cn=service".to_owned(),
        bind_password: SecretString::from("service"),
        base_dn: "dc=example".to_owned(),
        filter: "(uid={{username}})".to_owned(),
        username_attribute: "uid".to_owned(),
        id_attributes: ID_ATTRIBUTES_OF_SERVERS.map(str::to_owned).to_vec(),
        groups: GroupSearch::MemberOf { base_dn: None },
        timeout: Duration::from_secs(60),
        page_size: 500.try_into().unwrap(),
        max_message: 1024 * 1024,
    }
}

/// Requests of the library are short: their first byte behind the length is that of the number, their sixth the operation.
fn converse(stream: &mut TcpStream, answer: &impl Fn(u8, &mut TcpStream)) {
    let mut request = [0; 4096];
    while let Ok(1..) = stream.read(&mut request) {
        let header = match request[1] {
            0x81 => 3,
            0x82 => 4,
            _ => 2,
        };
        let (id, operation) = (request[header + 2], request[header + 3]);
        match operation {
            0x60 => drop(stream.write_all(&message(id, &[&result(0x61, b"")]))),
            _ => answer(id, stream),
        }
    }
}

pub fn send(stream: &mut TcpStream, parts: &[&[u8]]) {
    let _ = stream.write_all(&parts.concat());
}

fn refusal<T: std::fmt::Debug>(outcome: Result<T, DirectoryError>) -> String {
    match outcome {
        Err(DirectoryError::Answer(text)) => text,
        other => panic!("not refused: {other:?}"),
    }
}

pub const PAGES: &[u8] = b"1.2.840.113556.1.4.319";

#[rstest]
#[case::nested(|id| message(id, &[&nested(5_000)]), "nested")]
#[case::nested_in_an_entry(|id| message(id, &[&element(0x64, &nested(5_000))]), "nested")]
#[case::longer_than_accepted(|_| vec![0x30, 0x84, 0x7f, 0xff, 0xff, 0xff], "2147483647 bytes")]
#[case::too_many_elements(|id| message(id, &[&element(0x64, &[0x04, 0].repeat(500_001))]), "elements")]
#[case::length_without_end(|id| [&[0x30, 0x80, 0x02, 1, id][..], &result(0x65, b""), &[0, 0]].concat(), "no LDAP answer")]
#[case::http(|_| b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "no LDAP answer")]
#[case::nothing_inside(|_| element(0x30, b""), "no LDAP answer")]
#[case::another_request(|id| message(id + 9, &[&result(0x65, b"")]), "no LDAP answer")]
#[case::another_operation(|id| message(id, &[&result(0x61, b"")]), "no LDAP answer")]
#[case::result_without_code(|id| message(id, &[&element(0x65, b"")]), "no LDAP answer")]
#[case::entry_without_name(|id| message(id, &[&element(0x64, b"")]), "no LDAP answer")]
#[case::controls_of_nothing(|id| message(id, &[&result(0x65, b""), &controls(b"")]), "no LDAP answer")]
#[case::controls_in_one_piece(|id| message(id, &[&result(0x65, b""), &[0x80, 0]]), "no LDAP answer")]
#[case::control_with_a_number(|id| message(id, &[&result(0x65, b""), &controls(&[element(0x04, b"1"), element(2, b"1")].concat())]), "no LDAP answer")]
#[case::empty_flag(|id| message(id, &[&result(0x65, b""), &controls(&[element(0x04, b"1"), element(1, b"")].concat())]), "no LDAP answer")]
#[case::page_without_value(|id| message(id, &[&result(0x65, b""), &controls(&element(0x04, PAGES))]), "no LDAP answer")]
#[case::page_of_nothing(|id| message(id, &[&result(0x65, b""), &controls(&[element(0x04, PAGES), element(0x04, b"")].concat())]), "no LDAP answer")]
#[case::nested_page(|id| message(id, &[&result(0x65, b""), &controls(&[element(0x04, PAGES), element(0x04, &nested(5_000))].concat())]), "no LDAP answer")]
#[tokio::test]
async fn an_answer_of_another_form_ends_with_its_reason(
    #[case] answer: fn(u8) -> Vec<u8>,
    #[case] expected: &str,
) {
    let settings = serve(move |id, stream| send(stream, &[&answer(id)]));
    let listed = refusal(directory().list(&settings).await);
    assert!(listed.contains(expected), "{listed}");
    let password = SecretString::from("password");
    let signed_in = directory().sign_in(&settings, "ann", &password).await;
    assert!(refusal(signed_in).contains(expected));
    let check = directory().check(&settings, &Wanted::default()).await;
    let last = check.steps.last().unwrap();
    assert!(!last.ok && last.detail.contains(expected), "{last:?}");
}

#[rstest]
#[case::deep(nested(600), "nested")]
#[case::long(vec![0x30, 0x82, 0xff, 0xff], "no LDAP answer")]
#[tokio::test]
async fn an_answer_before_encryption_is_bounded(#[case] answer: Vec<u8>, #[case] expected: &str) {
    let settings = serve(move |_, stream| send(stream, &[&answer]));
    let settings = DirectorySettings {
        start_tls: true,
        ..settings
    };
    let text = refusal(directory().list(&settings).await);
    assert!(text.contains(expected), "{text}");
}

#[tokio::test]
async fn answers_without_end_are_left() {
    let settings = serve(|id, stream| {
        let answer = message(id, &[&entry(b"uid=ann,dc=example")]).repeat(1_000);
        while stream.write_all(&answer).is_ok() {}
    });
    let settings = DirectorySettings {
        max_message: 64 * 1024,
        ..settings
    };
    let text = refusal(directory().list(&settings).await);
    assert!(
        text.contains("more than 4 MiB over one connection"),
        "{text}"
    );
    let password = SecretString::from("password");
    let signed_in = directory().sign_in(&settings, "ann", &password).await;
    assert!(
        matches!(signed_in, Err(DirectoryError::TooMany(2))),
        "{signed_in:?}"
    );
    // Samba ignores the limit of the client.
    let check = directory().check(&settings, &Wanted::default()).await;
    let mut steps = check.steps.iter();
    assert!(
        !steps.any(|step| step.detail.contains("more than 10 entries")),
        "{check:?}"
    );
}

#[tokio::test]
async fn a_text_in_another_encoding_is_no_failure() {
    let settings = serve(|id, stream| {
        send(stream, &[&message(id, &[&result(0x65, b"Gr\xfc\xdfe")])]);
    });
    let listed = directory().list(&settings).await.unwrap();
    assert!(listed.people.is_empty());
}
