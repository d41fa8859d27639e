//! `agentyard image`.

mod pull;

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};

use super::kinds::LOCAL_IMAGES;
use super::output::cell::plain;
use super::output::clean::clean;
use super::output::items::{Amount, Printer};
use super::output::{Format, screen};
use super::pages::Pages;
use super::server::Server;
use super::{Failure, admin};

/// The engine's images.
#[derive(Debug, Subcommand)]
pub enum ImageCommand {
    /// Pull an image and show how far it is; it goes on when this command is ended
    #[command(
        after_help = "Examples:\n  agentyard image pull v0.2.9\n  agentyard image pull docker.io/sipeed/picoclaw:latest"
    )]
    Pull(pull::PullArgs),
    /// List the images on the engine
    #[command(
        after_help = "Examples:\n  agentyard image list\n  agentyard image list --all -o wide"
    )]
    List(ListArgs),
    /// Remove an image from the engine; not while users have it
    #[command(
        after_help = "Examples:\n  agentyard image delete v0.2.4\n  agentyard image delete --force docker.io/library/busybox:latest"
    )]
    Delete(DeleteArgs),
}

/// Which images.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Every image of the engine, not only those of the configured repository and of users
    #[arg(long)]
    all: bool,
    /// Only those that contain this
    #[arg(long, value_name = "TEXT", default_value = "")]
    search: String,
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    /// No line with the columns' titles
    #[arg(long)]
    no_headers: bool,
}

/// Which image.
#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// A tag of the configured repository, a reference, or an id
    #[arg(value_name = "IMAGE")]
    image: String,
    /// Also one that is not of the configured repository
    #[arg(long)]
    force: bool,
}

/// Pulls, lists or deletes.
///
/// # Errors
/// When no server answers, or it refuses.
pub async fn image(server: &Server, command: ImageCommand) -> Result<(), Failure> {
    match command {
        ImageCommand::Pull(args) => pull::pull(server, &args).await,
        ImageCommand::List(args) => list(server, args).await,
        ImageCommand::Delete(args) => delete(server, &args).await,
    }
}

async fn list(server: &Server, args: ListArgs) -> Result<(), Failure> {
    let mut printer = Printer::new(&LOCAL_IMAGES, args.output, Amount::List, !args.no_headers);
    let mut pages = Pages::new(server, &LOCAL_IMAGES, &args.search);
    if args.all {
        pages = pages.with("all=true");
    }
    while let Some(images) = pages.next().await? {
        printer.print(&images)?;
    }
    printer.end()
}

async fn delete(server: &Server, args: &DeleteArgs) -> Result<(), Failure> {
    let body = json!({ "image": args.image, "force": args.force });
    let path = "/api/admin/images/delete";
    let (status, text) = admin::send(&server.settings, Method::POST, path, Some(&body)).await?;
    let answer = admin::judge(status, &text).map_err(|failure| in_use(failure, &text))?;
    let object = answer.get("object").map(plain).unwrap_or_default();
    let image = clean(object.strip_prefix("image/").unwrap_or(&args.image));
    if answer.get("state") == Some(&json!("pending")) {
        return screen::print(&format!("{image} is removed as soon as that can be done\n"));
    }
    screen::print(&format!("{image} is removed\n"))
}

/// Who has it, and what they could have instead.
fn in_use(failure: Failure, text: &str) -> Failure {
    let Failure::Failed(said) = failure else {
        return failure;
    };
    let answer: Value = serde_json::from_str(text).unwrap_or_default();
    let named = |key: &str| answer.get(key).map(plain).filter(|names| !names.is_empty());
    let users = named("users").map(|users| format!("\nusers: {users}"));
    let others = named("alternatives").map(|others| format!("\nother images: {others}"));
    Failure::Failed(format!(
        "{said}{}{}",
        users.unwrap_or_default(),
        others.unwrap_or_default()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l38_an_image_in_use_is_refused_with_users_and_alternatives() {
        let text = r#"{"error":"in use","users":["alice","bob"],"alternatives":["a:2"]}"#;
        let failure = in_use(Failure::Failed("in use".to_owned()), text);
        assert_eq!(
            failure.to_string(),
            "in use\nusers: alice, bob\nother images: a:2"
        );
        let other = in_use(Failure::Failed("no".to_owned()), "no JSON");
        assert_eq!(other.to_string(), "no");
    }
}
