//! `agentyard skill bind`, `unbind`, `deploy` and `undeploy`.

use clap::Args;
use serde_json::json;

use crate::cli::Result;
use crate::cli::effect::How;
use crate::cli::server::Server;

/// Which skill, and to what it is bound.
#[derive(Debug, Args)]
pub struct BindArgs {
    /// Name of the skill
    skill: String,
    /// Group, including the groups in it
    #[arg(long, value_name = "GROUP", required_unless_present = "user")]
    group: Option<String>,
    /// User
    #[arg(long, value_name = "USER", conflicts_with = "group")]
    user: Option<String>,
    #[command(flatten)]
    how: How,
}

/// Which skill, for whom.
#[derive(Debug, Args)]
pub struct DeployArgs {
    /// Name of the skill
    #[arg(required_unless_present = "check")]
    skill: Option<String>,
    /// Group, including the groups in it [default: all users]
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// User [default: all users]
    #[arg(long, value_name = "USER", conflicts_with = "group")]
    user: Option<String>,
    /// Compare these users' skills with the store and repair them; changes no binding
    #[arg(long, value_name = "USER", num_args = 1.., conflicts_with_all = ["skill", "group", "user"])]
    check: Vec<String>,
    #[command(flatten)]
    how: How,
}

/// Which skill, and to what it was bound.
#[derive(Debug, Args)]
pub struct UndeployArgs {
    /// Name of the skill
    skill: String,
    /// Group [default: all users]
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// User [default: all users]
    #[arg(long, value_name = "USER", conflicts_with = "group")]
    user: Option<String>,
    #[command(flatten)]
    how: How,
}

const DEPLOY: &str = "/api/admin/skills/deploy";
const UNDEPLOY: &str = "/api/admin/skills/undeploy";

/// Binds a skill to a group or a user.
///
/// # Errors
/// When no server answers, it refuses, or a user's skills need manual action.
pub async fn bind(server: &Server, args: BindArgs) -> Result {
    let BindArgs {
        skill,
        group,
        user,
        how,
    } = args;
    send(server, DEPLOY, Some(skill), group, user, how).await
}

/// Ends a binding to a group or a user.
///
/// # Errors
/// As [`bind`].
pub async fn unbind(server: &Server, args: BindArgs) -> Result {
    let BindArgs {
        skill,
        group,
        user,
        how,
    } = args;
    send(server, UNDEPLOY, Some(skill), group, user, how).await
}

/// Binds a skill, by default to everybody; or checks what is deployed.
///
/// # Errors
/// As [`bind`].
pub async fn deploy(server: &Server, args: DeployArgs) -> Result {
    if !args.check.is_empty() {
        let body = json!({ "usernames": args.check });
        return args.how.send(server, DEPLOY, body).await;
    }
    let DeployArgs {
        skill,
        group,
        user,
        how,
        ..
    } = args;
    send(server, DEPLOY, skill, group, user, how).await
}

/// Ends a binding, by default that to everybody.
///
/// # Errors
/// As [`bind`].
pub async fn undeploy(server: &Server, args: UndeployArgs) -> Result {
    let UndeployArgs {
        skill,
        group,
        user,
        how,
    } = args;
    send(server, UNDEPLOY, Some(skill), group, user, how).await
}

async fn send(
    server: &Server,
    path: &str,
    skill: Option<String>,
    group: Option<String>,
    user: Option<String>,
    how: How,
) -> Result {
    let body = json!({ "skill_name": skill, "group_name": group, "username": user });
    how.send(server, path, body).await
}
