//! New passwords from a terminal or standard input; never from arguments, which other users of the machine can see.

use std::io::{BufRead, IsTerminal, Read};

use clap::Args;
use secrecy::{ExposeSecret, SecretString};

use super::local::blocking;
use super::model::Hidden;
use super::{Failure, Result, failed};

/// Longest line that is read for a password, in bytes; longer than any password may be.
const LONGEST: u64 = 4096;

/// Source of a password.
#[derive(Debug, Args)]
pub struct PasswordArgs {
    /// Password: `-` prompts for it, or reads one line of standard input
    #[arg(long, value_name = "-", allow_hyphen_values = true)]
    password: Option<Hidden>,
}

impl PasswordArgs {
    /// Refuses the option where it has no place.
    ///
    /// # Errors
    /// It was given.
    pub fn refuse(&self, why: &str) -> Result {
        match self.password {
            None => Ok(()),
            Some(_) => Err(Failure::Usage(format!("--password: {why}"))),
        }
    }

    /// Reads the password; `None` without the option.
    ///
    /// # Errors
    /// The option has another value than `-`, or there is not exactly one line to read.
    pub async fn read(&self) -> Result<Option<SecretString>> {
        match &self.password {
            None => return Ok(None),
            Some(given) if given.is_stdin() => {}
            Some(_) => {
                let why = "--password takes only `-`, because other users of this machine can see arguments: \
                           it prompts for the password, or reads one line of standard input";
                return Err(Failure::Usage(why.to_owned()));
            }
        }
        match std::io::stdin().is_terminal() {
            true => prompt_twice().await.map(Some),
            false => blocking(|| read_line(std::io::stdin().lock()))
                .await
                .map(Some),
        }
    }
}

fn read_line(input: impl BufRead) -> Result<SecretString> {
    let mut text = String::new();
    let read = input.take(LONGEST).read_to_string(&mut text);
    let read = read.map_err(|error| failed(format!("the password cannot be read: {error}")));
    let text = SecretString::from(text);
    read?;
    let mut lines = text.expose_secret().lines();
    match (lines.next(), lines.next()) {
        (Some(line), None) if !line.is_empty() => Ok(SecretString::from(line)),
        (None | Some(""), _) => Err(failed("standard input has no password in its first line")),
        _ => Err(failed(
            "standard input has more than one line; the password is one",
        )),
    }
}

/// Prompts twice, without showing what is typed.
///
/// # Errors
/// There is no terminal, or the passwords differ.
pub async fn prompt_twice() -> Result<SecretString> {
    let typed = tokio::task::spawn_blocking(|| {
        let first = rpassword::prompt_password("New password: ")?;
        let second = rpassword::prompt_password("Repeat: ")?;
        Ok::<_, std::io::Error>((SecretString::from(first), SecretString::from(second)))
    })
    .await
    .map_err(failed)?;
    let (first, second) = typed.map_err(|error| {
        Failure::Failed(format!(
            "cannot prompt for the password ({error}); use --random or --password - where there is no terminal"
        ))
    })?;
    if first.expose_secret() != second.expose_secret() {
        return Err(Failure::Failed("the passwords differ".to_owned()));
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_is_exactly_one_line() {
        for (text, expected) in [
            ("correct horse\n", "correct horse"),
            ("correct horse\r\n", "correct horse"),
            (" two  spaces ", " two  spaces "),
        ] {
            let read = read_line(text.as_bytes()).unwrap();
            assert_eq!(read.expose_secret(), expected);
        }
        for text in ["", "\n", "hunter2\nsecond\n", "hunter2\n\n"] {
            let error = read_line(text.as_bytes()).unwrap_err().to_string();
            assert!(
                error.contains("standard input") && !error.contains("hunter2"),
                "{error}"
            );
        }
    }

    #[tokio::test]
    async fn password_in_the_arguments_is_refused_and_not_shown() {
        let args = PasswordArgs {
            password: Some(Hidden::from("hunter2")),
        };
        assert!(!format!("{args:?}").contains("hunter2"));
        let refused = args.read().await.unwrap_err();
        assert!(matches!(refused, Failure::Usage(_)));
        assert!(!refused.to_string().contains("hunter2"));
    }
}
