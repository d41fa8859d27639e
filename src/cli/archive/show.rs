//! `agentyard archive show`.

use schema::clock::{Clock, SystemClock};
use schema::home::ArchiveContents;
use schema::ids::Timestamp;
use serde_json::{Value, json};

use super::{ShowArgs, find, item, not_restored};
use crate::cli::Result;
use crate::cli::kinds::ARCHIVES;
use crate::cli::local::{Local, blocking};
use crate::cli::output::cell::{at, cleaned, counted, number, text};
use crate::cli::output::clean::clean;
use crate::cli::output::items::print_one;
use crate::cli::output::time::{moment, relative};
use crate::cli::output::{Format, screen};

/// Shows one archive.
///
/// # Errors
/// When there is no such archive, or it cannot be read.
pub async fn show(local: &Local, args: &ShowArgs) -> Result {
    let (archive, handle) = find(local, &args.archive).await?;
    let (homes, read) = (local.homes.clone(), archive.clone());
    let (shown, user) = (handle.clone(), archive.user.to_string());
    let contents = blocking(move || {
        let contents = homes.archive_contents(&read);
        contents.map_err(|error| not_restored(error, &shown, &user))
    });
    let contents = contents.await?;
    let mut found = item(&archive, &handle, &contents.path.display().to_string());
    found["workspace"] = workspace(&contents);
    match args.output {
        Format::Table | Format::Wide | Format::Custom(_) => {
            screen::print(&render(&found, SystemClock.now()))
        }
        Format::Json | Format::Yaml | Format::Name => print_one(&ARCHIVES, &found, args.output),
    }
}

fn workspace(contents: &ArchiveContents) -> Value {
    let top = contents.top.iter();
    let top: Vec<Value> = top
        .map(|entry| json!({ "name": entry.name, "type": entry.kind }))
        .collect();
    json!({
        "entries": contents.entries,
        "bytes": contents.bytes,
        "complete": contents.complete,
        "unreadable": contents.unreadable,
        "top": top,
        "top_count": contents.top_count,
    })
}

fn render(archive: &Value, now: Timestamp) -> String {
    let mut lines = vec![
        format!("Archive:     {}", cleaned(archive, "archive")),
        format!("Path:        {}", cleaned(archive, "path")),
    ];
    if let Some(at) = moment(archive, "deleted_at") {
        lines.push(format!("Deleted:     {}", relative(now, at)));
    }
    if at(archive, "batch").is_string() {
        let modes = cleaned(archive, "mode_switch");
        let batch = cleaned(archive, "batch");
        lines.push(format!("Mode switch: {modes} (batch {batch})"));
    }
    let number = |field: &str| number(archive, &format!("workspace.{field}"));
    let more = match at(archive, "workspace.complete") == true {
        true => "",
        false => "more than ",
    };
    let entries = match number("entries") {
        1 => "1 entry".to_owned(),
        entries => format!("{entries} entries"),
    };
    let bytes = counted(number("bytes"), "byte");
    lines.push(format!("Workspace:   {more}{entries}, {bytes}"));
    if number("unreadable") > 0 {
        let unreadable = number("unreadable");
        lines.push(format!(
            "Unreadable:  {unreadable} (not counted; a restore reads them)"
        ));
    }
    let top = at(archive, "workspace.top").as_array();
    let top: Vec<&Value> = top.into_iter().flatten().collect();
    if !top.is_empty() {
        lines.push(String::new());
    }
    lines.extend(top.iter().map(|entry| {
        // What somebody wrote, perhaps to move the cursor.
        let name = clean(&text(entry, "name"));
        match text(entry, "type").as_str() {
            "directory" => format!("  {name}/"),
            "file" => format!("  {name}"),
            kind => format!("  {name} ({kind})"),
        }
    }));
    let hidden = number("top_count").saturating_sub(top.len() as u64);
    if hidden > 0 {
        lines.push(format!("  … and {hidden} more"));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_shown_with_harmless_names() {
        let now = Timestamp::from_secs(1_778_500_300);
        let archive = json!({
            "archive": "alice@2026-05-11T11:46:40Z", "path": "/srv/archive/alice-20260511T114640Z",
            "deleted_at": "2026-05-11T11:46:40Z", "mode_switch": "local-to-ldap",
            "batch": "20260511T114640Z-mode-local-to-ldap",
            "workspace": {"entries": 70, "bytes": 1, "complete": true, "unreadable": 2, "top_count": 52, "top": [
                {"name": "a", "type": "directory"},
                {"name": "evil\u{1b}[2J\nname", "type": "file"},
                {"name": "l", "type": "link"},
            ]},
        });
        let expected = "\
Archive:     alice@2026-05-11T11:46:40Z
Path:        /srv/archive/alice-20260511T114640Z
Deleted:     5m ago (2026-05-11T11:46:40Z)
Mode switch: local-to-ldap (batch 20260511T114640Z-mode-local-to-ldap)
Workspace:   70 entries, 1 byte
Unreadable:  2 (not counted; a restore reads them)

  a/
  evil\\u{1b}[2J\\nname
  l (link)
  … and 49 more
";
        assert_eq!(render(&archive, now), expected);
    }
}
