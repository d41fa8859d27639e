//! `agentyard image`.

mod pull;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::Result;
use super::kinds::LOCAL_IMAGES;
use super::output::cell::{cleaned, text};
use super::output::clean::clean;
use super::output::screen;
use super::pages::{ListArgs, Pages};
use super::server::Server;

/// The engine's images.
#[derive(Debug, Subcommand)]
pub enum ImageCommand {
    /// Pull an image and show the progress (Ctrl-C does not stop the pull)
    #[command(
        after_help = "Examples:\n  agentyard image pull v0.2.9\n  agentyard image pull docker.io/sipeed/picoclaw:latest"
    )]
    Pull(pull::PullArgs),
    /// List the images on the engine
    #[command(
        after_help = "Examples:\n  agentyard image list\n  agentyard image list --all -o wide"
    )]
    List(ImageListArgs),
    /// Delete an image from the engine; refused while in use
    #[command(
        after_help = "Examples:\n  agentyard image delete v0.2.4 --dry-run\n  agentyard image delete v0.2.4\n  agentyard image delete --force docker.io/library/busybox:latest"
    )]
    Delete(DeleteArgs),
}

/// Which images.
#[derive(Debug, Args)]
pub struct ImageListArgs {
    /// List all images of the engine, not only those of the configured repository or in use
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    list: ListArgs,
}

/// Which image.
#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// Tag of the configured repository, reference, or ID
    #[arg(value_name = "IMAGE")]
    image: String,
    /// Allow an image of another repository than the configured one
    #[arg(long)]
    force: bool,
    /// Show the references that would be deleted, without deleting them
    #[arg(long)]
    dry_run: bool,
}

/// Pulls, lists or deletes.
///
/// # Errors
/// When no server answers, or it refuses.
pub async fn image(server: &Server, command: ImageCommand) -> Result {
    match command {
        ImageCommand::Pull(args) => pull::pull(server, &args).await,
        ImageCommand::List(args) => list(server, args).await,
        ImageCommand::Delete(args) => delete(server, &args).await,
    }
}

async fn list(server: &Server, args: ImageListArgs) -> Result {
    let mut pages = Pages::new(server, &LOCAL_IMAGES, &args.list.search);
    if args.all {
        pages = pages.with("all=true");
    }
    pages.print(args.list.output, |_| {}).await
}

/// An image that would be deleted, with its references when it goes by its id.
fn describe_doomed(answer: &Value) -> String {
    let (image, references) = (cleaned(answer, "image"), cleaned(answer, "references"));
    match references.is_empty() || references == image {
        true => image,
        false => format!("{image} ({references})"),
    }
}

async fn delete(server: &Server, args: &DeleteArgs) -> Result {
    let body = json!({ "image": args.image, "force": args.force, "dry_run": args.dry_run });
    let path = "/api/admin/images/delete";
    let answer = server.post(path, &body).await?;
    if args.dry_run {
        return screen::print(&format!("would delete: {}\n", describe_doomed(&answer)));
    }
    let object = text(&answer, "object");
    let image = clean(object.strip_prefix("image/").unwrap_or(&args.image));
    let removal = cleaned(&answer, "removal");
    let done = match text(&answer, "state").as_str() {
        _ if !removal.is_empty() => format!("is not requested any more; {removal}"),
        "pending" => "deletion requested".to_owned(),
        _ => "deleted".to_owned(),
    };
    screen::print(&format!("{image} {done}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_named_when_an_id_goes() {
        let by_name = json!({"image": "a:1", "references": ["a:1"]});
        assert_eq!(describe_doomed(&by_name), "a:1");
        let by_id = json!({"image": "sha256:ab", "references": ["a:1", "a:2"]});
        assert_eq!(describe_doomed(&by_id), "sha256:ab (a:1, a:2)");
    }
}
