//! Output of generated passwords: standard output, or a new file that only its owner may read.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::output::screen;
use crate::cli::{Failure, Result};

const HEADER: &str = "username,password\n";

/// Place for generated passwords.
#[derive(Debug, Args)]
pub struct PasswordsArgs {
    /// Write generated passwords to a new file (mode 0600) instead of standard output
    #[arg(long, value_name = "FILE")]
    passwords: Option<PathBuf>,
}

/// A CSV of names and passwords that is written as accounts are created.
pub struct Credentials {
    file: Option<(PathBuf, File)>,
    count: usize,
}

impl Credentials {
    /// Opens the place before an account is created, so that no password is lost for want of it.
    ///
    /// # Errors
    /// The file exists, or cannot be created.
    pub fn open(args: &PasswordsArgs) -> Result<Self> {
        let path = args
            .passwords
            .as_deref()
            .filter(|path| *path != Path::new("-"));
        let file = match path {
            None => None,
            Some(path) => {
                let mut options = OpenOptions::new();
                let opened = options.write(true).create_new(true).mode(0o600).open(path);
                let opened = opened.map_err(|error| refuse(path, &error))?;
                Some((path.to_owned(), opened))
            }
        };
        Ok(Self { file, count: 0 })
    }

    /// Writes names with their passwords.
    ///
    /// # Errors
    /// They cannot be written; the message names the accounts, never the passwords.
    pub fn write(&mut self, accounts: &[(String, String)]) -> Result {
        if accounts.is_empty() {
            return Ok(());
        }
        let mut text = String::new();
        if self.count == 0 {
            text.push_str(HEADER);
        }
        for (name, password) in accounts {
            text.push_str(&format!("{name},{}\n", quoted(password)));
        }
        self.count += accounts.len();
        let Some((path, file)) = &mut self.file else {
            return screen::print(&text);
        };
        let written = file.write_all(text.as_bytes());
        written.and_then(|()| file.sync_data()).map_err(|error| {
            let names: Vec<&str> = accounts.iter().map(|(name, _)| name.as_str()).collect();
            Failure::Failed(format!(
                "{}: {error}; the passwords of these accounts are lost, and `agentyard reset-password NAME` sets others: {}",
                path.display(),
                names.join(", ")
            ))
        })
    }

    /// Names the file, or removes it if no password was generated.
    pub fn finish(self) {
        let Some((path, _)) = &self.file else {
            return;
        };
        if self.count > 0 {
            screen::note(&format!("generated passwords: {}", path.display()));
        } else {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn refuse(path: &Path, error: &std::io::Error) -> Failure {
    let path = path.display();
    Failure::Failed(match error.kind() {
        ErrorKind::AlreadyExists => {
            format!("{path} exists and is never overwritten; name another file with --passwords")
        }
        _ => format!("{path}: {error}"),
    })
}

/// A cell of CSV. Passwords that the server generates need no quotes.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn passwords_go_to_a_new_file_of_the_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("passwords.csv");
        let args = PasswordsArgs {
            passwords: Some(path.clone()),
        };
        Credentials::open(&args).unwrap().finish();
        assert!(!path.exists(), "no password was generated");

        let mut credentials = Credentials::open(&args).unwrap();
        let account = |name: &str, password: &str| (name.to_owned(), password.to_owned());
        credentials.write(&[]).unwrap();
        credentials.write(&[account("alice", "tg7X")]).unwrap();
        credentials.write(&[account("bob", "a,\"b")]).unwrap();
        credentials.finish();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "username,password\nalice,tg7X\nbob,\"a,\"\"b\"\n");
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);

        let refused = Credentials::open(&args).err().unwrap().to_string();
        assert!(refused.contains("never overwritten"), "{refused}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}
