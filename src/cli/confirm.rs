//! Confirmation of what cannot be undone.

use std::io::{IsTerminal, Write};

use super::local::blocking;
use super::{Failure, Result, failed};

/// Asks for the word `yes`. `subject` completes "nothing was …": `deleted`.
///
/// # Errors
/// There is no terminal, or another word was typed.
pub async fn confirm(question: &str, subject: &str) -> Result {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::Usage(format!(
            "nothing was {subject}: no terminal to confirm it; repeat the command with --yes"
        )));
    }
    let (question, subject) = (question.to_owned(), subject.to_owned());
    blocking(move || {
        let mut prompt = std::io::stderr();
        write!(prompt, "{question} Type yes to confirm: ").map_err(failed)?;
        prompt.flush().map_err(failed)?;
        let mut typed = String::new();
        std::io::stdin().read_line(&mut typed).map_err(failed)?;
        match typed.trim().eq_ignore_ascii_case("yes") {
            true => Ok(()),
            false => Err(Failure::Failed(format!("nothing was {subject}"))),
        }
    })
    .await
}
