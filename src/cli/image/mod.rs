//! `agentyard image`.

mod pull;

use clap::{Args, Subcommand};
use serde_json::json;

use super::Result;
use super::kinds::LOCAL_IMAGES;
use super::output::cell::text;
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
        after_help = "Examples:\n  agentyard image delete v0.2.4\n  agentyard image delete --force docker.io/library/busybox:latest"
    )]
    Delete(DeleteArgs),
}

/// Which images.
#[derive(Debug, Args)]
pub struct ImageListArgs {
    /// All images of the engine, not only those of the configured repository or in use
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    list: ListArgs,
}

/// Which image.
#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// Tag of the configured repository, reference, or id
    #[arg(value_name = "IMAGE")]
    image: String,
    /// Allow an image of another repository than the configured one
    #[arg(long)]
    force: bool,
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

async fn delete(server: &Server, args: &DeleteArgs) -> Result {
    let body = json!({ "image": args.image, "force": args.force });
    let path = "/api/admin/images/delete";
    let answer = server.post(path, &body).await?;
    let object = text(&answer, "object");
    let image = clean(object.strip_prefix("image/").unwrap_or(&args.image));
    let done = match text(&answer, "state").as_str() {
        "pending" => "deletion requested",
        _ => "deleted",
    };
    screen::print(&format!("{image} {done}\n"))
}
