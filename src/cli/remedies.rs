//! Commands that texts of the program tell their readers to run: each is one of this command line.

use std::path::{Path, PathBuf};

use clap::Parser;
use schema::condition::Reason;
use strum::VariantArray;

use super::Cli;

/// Commands in a text: what is in backquotes and begins with the program's name.
fn list_commands(text: &str) -> Vec<String> {
    let quoted = text.split('`').skip(1).step_by(2);
    let named = quoted.filter(|quoted| quoted.starts_with("agentyard "));
    named.map(str::to_owned).collect()
}

/// Form in which a text names a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    /// To be run as it stands.
    Whole,
    /// Without what the reader adds.
    InPassing,
}

/// Returns the error of a command; `None` if this command line has it.
fn find_fault(command: &str, named: Named) -> Option<String> {
    let mut words: Vec<&str> = command.split_whitespace().collect();
    for word in &mut words {
        // Placeholders, for which the reader puts something else.
        *word = match word.trim_end_matches('…') {
            "KIND/NAME" => "user/alice",
            "REVISION" | "ID" | "N" => "1",
            other => other,
        };
    }
    let error = Cli::try_parse_from(&words).err()?;
    match error.kind() {
        clap::error::ErrorKind::DisplayHelp | clap::error::ErrorKind::DisplayVersion => None,
        clap::error::ErrorKind::MissingRequiredArgument if named == Named::InPassing => None,
        // A group of commands is named as such.
        clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => None,
        _ => Some(format!("{command}: {error}")),
    }
}

#[test]
fn every_remedy_of_a_reason_names_a_command() {
    let mut count = 0;
    for reason in Reason::VARIANTS {
        let remedy = reason.remedy();
        for command in list_commands(remedy) {
            count += 1;
            assert_eq!(find_fault(&command, Named::Whole), None, "{reason}");
        }
        // A command is named whole, with the program's name.
        for words in ["run retry", "run auth", "run adapter", ", describe "] {
            assert!(!remedy.contains(words), "{reason}: {remedy}");
        }
        if let Some(quoted) = remedy.split('`').skip(1).step_by(2).next() {
            assert!(quoted.starts_with("agentyard "), "{reason}: {remedy}");
        }
    }
    assert!(count >= 20, "{count}");
}

/// Puts a value in the place of everything in braces.
fn fill_placeholders(command: &str, value: &str) -> String {
    let mut parts = command.split('{');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.split_once('}').map_or("", |(_, rest)| rest);
        filled.push_str(value);
        filled.push_str(rest);
    }
    filled
}

fn collect_sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            collect_sources(&path, files);
        } else if name.ends_with(".rs") && !name.contains("tests") && name != "remedies.rs" {
            files.push(path);
        }
    }
}

/// The same of every other text in the code: what is formatted into it counts as a word.
#[test]
fn every_command_in_a_text_of_the_code_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in [
        "src",
        "api/src",
        "reconcilers/src",
        "reconcilers/engine",
        "schema/src",
    ] {
        collect_sources(&root.join(folder), &mut files);
    }
    let mut faults = Vec::new();
    let mut count = 0;
    for file in files {
        let code = std::fs::read_to_string(&file).unwrap();
        let lines = code.lines().map(str::trim_start);
        for line in lines.filter(|line| !line.starts_with("//!")) {
            let line = line
                .replace("`{} ", "`agentyard ")
                .replace("`{0} ", "`agentyard ");
            let line = line
                .replace("`{command} ", "`agentyard ")
                .replace("\\\"", "\"");
            // One that is all formatted in comes from elsewhere in the code.
            let all = list_commands(&line).into_iter();
            for command in all.filter(|command| !command.starts_with("agentyard {")) {
                count += 1;
                // A placeholder stands for a number, or an object.
                let faults_of = ["1", "user/alice"].map(|value| {
                    let filled = fill_placeholders(&command, value);
                    find_fault(&filled, Named::InPassing)
                });
                if let [Some(fault), Some(_)] = faults_of {
                    faults.push(format!("{}: {fault}", file.display()));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count >= 40, "{count}");
}
