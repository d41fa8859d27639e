use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;

use http::StatusCode;

use super::bounds::ROWS;
use super::*;
use crate::openapi::Schemas;

/// Returns the number of things of a bound, all owners together.
fn most_of_all(bound: &Bound, depth: usize) -> usize {
    assert!(depth < 5, "{}: no number at the end", bound.name);
    match bound.all {
        All::Most(most) => most,
        All::Accounts => 1000,
        All::Cores => 1,
        All::Times(other) => bound.each().saturating_mul(most_of_all(other, depth + 1)),
    }
}

#[test]
fn each_row_has_an_end_and_leaves_room_to_other_accounts() {
    let mut names = HashSet::new();
    for (constant, row) in ROWS {
        assert!(names.insert(row.name), "{constant}: {} twice", row.name);
        let all = most_of_all(row, 0);
        let is_socket = constant.starts_with("SOCKET_");
        match row.each {
            Each::Account(each) if row.all == All::Accounts => assert!(each > 0, "{constant}"),
            Each::Account(each) | Each::Address(each) => {
                assert!(each > 0 && (is_socket || 2 * each <= all), "{constant}");
            }
            Each::Of(_, each) => assert!(each > 0, "{constant}"),
            Each::Service(reason) => assert!(!reason.is_empty(), "{constant}"),
        }
    }
}

#[test]
fn route_that_holds_something_names_its_bound() {
    let mut schemas = Schemas::default();
    let mut missing = Vec::new();
    for route in crate::routes::all() {
        let bodies = route.handler.describe(&mut schemas).bodies;
        let lasts = bodies.iter().any(|body| {
            body.status == StatusCode::SWITCHING_PROTOCOLS
                || matches!(
                    body.content_type,
                    "text/event-stream" | "application/octet-stream" | "application/zip"
                )
        });
        if lasts != route.holds.is_some() {
            missing.push(route.id);
        }
    }
    assert_eq!(
        missing, [""; 0],
        "call `holds` with a row of limits/bounds.rs"
    );
}

fn number(unit: Unit, number: usize) -> String {
    let mib = 1024 * 1024;
    match unit {
        Unit::Bytes if number.is_multiple_of(mib) => format!("{} MiB", number / mib),
        Unit::Bytes => format!("{} KiB", number / 1024),
        Unit::Number => number.to_string(),
    }
}

/// The table of the security model.
fn table() -> String {
    let mut text = "| what is held | for one | for all |\n| --- | --- | --- |\n".to_owned();
    for (_, row) in ROWS {
        let each = match row.each {
            Each::Account(each) => format!("account: {}", number(row.unit, each)),
            Each::Address(each) => format!("address: {}", number(row.unit, each)),
            Each::Of(other, each) => {
                let is_account = matches!(other.each, Each::Account(_));
                let each = number(row.unit, each);
                match is_account {
                    true => format!("{each} of each of an account's {}", other.name),
                    false => format!("{each} of each of {}", other.name),
                }
            }
            Each::Service(reason) => reason.to_owned(),
        };
        let all = match row.all {
            All::Most(all) => number(row.unit, all),
            All::Times(other) => format!("by the number of {}", other.name),
            All::Accounts => "by the number of accounts".to_owned(),
            All::Cores => "one a core".to_owned(),
        };
        let _ = writeln!(text, "| {} | {each} | {all} |", row.name);
    }
    text
}

#[test]
fn security_model_lists_all_rows() {
    const BEGIN: &str = "<!-- bounds: made from api/src/limits/bounds.rs by AGENTYARD_WRITE_TABLES=1 cargo test -p api limits -->\n";
    const END: &str = "<!-- end of bounds -->";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/security-model.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = document.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let expected = format!("{before}{BEGIN}{}{END}{after}", table());
    if std::env::var_os("AGENTYARD_WRITE_TABLES").is_some() {
        std::fs::write(&path, expected).unwrap();
        return;
    }
    assert!(
        document == expected,
        "{}: run the command in its comment",
        path.display()
    );
}
