//! `agentyard user create`.

use std::collections::{BTreeMap, HashSet};
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use schema::ids::{PlainName, UserName};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::credentials::{Credentials, PasswordsArgs};
use super::file::{self, NewUser, Problems};
use crate::cli::bulk::{follow_task, report_failures};
use crate::cli::kinds::GROUPS;
use crate::cli::local::blocking;
use crate::cli::new_password::PasswordArgs;
use crate::cli::output::cell::{cleaned, counted, text};
use crate::cli::output::clean::clean;
use crate::cli::output::screen;
use crate::cli::pages::Pages;
use crate::cli::server::Server;
use crate::cli::{Failure, Result, failed};

const PATH: &str = "/api/admin/users/batch-create";
/// Users of one request: each costs the server a hash of some 20 ms.
const CHUNK: usize = 100;
/// Largest file of users, in bytes.
const LARGEST_FILE: u64 = 4 * 1024 * 1024;

/// Users to create.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// Names of users
    #[arg(value_name = "NAME", required_unless_present = "file")]
    names: Vec<UserName>,
    /// CSV file with the header `username,password,image,groups`, or one name per line; `-` reads standard input
    #[arg(short, long, value_name = "FILE", conflicts_with = "names")]
    file: Option<PathBuf>,
    /// Image of the users: a tag of the configured repository [default: image.tag]
    #[arg(long, value_name = "TAG", value_parser = tag)]
    image: Option<String>,
    /// Group that the users become members of (repeatable)
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<PlainName>,
    #[command(flatten)]
    password: PasswordArgs,
    #[command(flatten)]
    passwords: PasswordsArgs,
    /// Return without waiting for containers
    #[arg(short, long)]
    detach: bool,
}

fn tag(text: &str) -> Result<String, String> {
    match file::find_image_problem(text) {
        Some(problem) => Err(problem),
        None => Ok(text.to_owned()),
    }
}

/// Creates users, prints the generated passwords, and waits for the containers.
///
/// # Errors
/// A line of the file is not usable, in which case nothing is created; no server answers, it refuses, or a user is not
/// created or its container fails.
pub async fn create(server: &Server, args: CreateArgs) -> Result {
    let mut users = match &args.file {
        Some(path) => {
            args.password
                .refuse("with --file, passwords come from the column password")?;
            read_file(server, path).await?
        }
        None => {
            let names = distinct(&args.names)?;
            if names.len() > 1 {
                args.password.refuse("it is for one NAME only")?;
            }
            names.into_iter().map(NewUser::new).collect()
        }
    };
    if let (Some(password), [user]) = (args.password.read().await?, &mut users[..]) {
        user.password = Some(password);
    }
    for user in &mut users {
        if user.image.is_none() {
            user.image.clone_from(&args.image);
        }
        let more = args.groups.iter();
        let more = more.filter(|group| !user.groups.contains(group)).cloned();
        let more: Vec<PlainName> = more.collect();
        user.groups.extend(more);
    }
    // A server that is not there is found out before the file for passwords is made.
    server.get("/api/health").await?;
    let credentials = Credentials::open(&args.passwords)?;
    let mut creation = Creation {
        server,
        credentials,
        total: users.len(),
        created: 0,
        failed: false,
        tasks: Vec::new(),
    };
    let made = creation.send_all(&users).await;
    creation.finish(made, args.detach).await
}

fn distinct(names: &[UserName]) -> Result<Vec<UserName>> {
    let mut seen = HashSet::new();
    for name in names {
        if !seen.insert(name.key()) {
            return Err(Failure::Usage(format!("{name} is given twice")));
        }
    }
    Ok(names.to_vec())
}

/// Reads a file of users and checks each line of it, groups included.
async fn read_file(server: &Server, path: &Path) -> Result<Vec<NewUser>> {
    let shown = match path == Path::new("-") {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    };
    let place = path.to_owned();
    let read = blocking(move || read_bounded(&place).map_err(failed)).await;
    let bytes = read.map_err(|error| Failure::Failed(format!("{shown}: {error}")))?;
    if bytes.len() as u64 > LARGEST_FILE {
        let text = format!("{shown}: larger than 4 MiB; split it into several files");
        return Err(Failure::Failed(text));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = &error.as_bytes()[..valid];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        Failure::Failed(format!("{shown}: line {line} is not UTF-8"))
    })?;
    let mut problems = Problems::default();
    let users = file::parse(&text, &mut problems);
    check_groups(server, &users, &mut problems).await?;
    if let Some(problems) = problems.describe() {
        return Err(Failure::Failed(format!(
            "{shown}: nothing was created\n{problems}"
        )));
    }
    match users.is_empty() {
        true => Err(Failure::Failed(format!("{shown}: no users"))),
        false => Ok(users),
    }
}

fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = LARGEST_FILE + 1;
    match path == Path::new("-") {
        true => std::io::stdin().lock().take(most).read_to_end(&mut bytes)?,
        false => std::fs::File::open(path)?
            .take(most)
            .read_to_end(&mut bytes)?,
    };
    Ok(bytes)
}

/// Notes the lines that name a group that does not exist.
async fn check_groups(server: &Server, users: &[NewUser], problems: &mut Problems) -> Result {
    if users.iter().all(|user| user.groups.is_empty()) {
        return Ok(());
    }
    let mut known = HashSet::new();
    let mut pages = Pages::new(server, &GROUPS, "");
    while let Some(groups) = pages.next().await? {
        let names = groups
            .iter()
            .map(|group| text(group, "name").to_lowercase());
        known.extend(names);
    }
    for user in users {
        for group in user
            .groups
            .iter()
            .filter(|group| !known.contains(&group.key()))
        {
            let name = group.as_str();
            let text = format!(
                "group {name} not found; `{} group list` lists them",
                server.command
            );
            problems.add(user.line, text);
        }
    }
    Ok(())
}

/// Users with the same image and groups, in the order of the file.
fn batches(users: &[NewUser]) -> Vec<Vec<&NewUser>> {
    let mut order: Vec<Vec<&NewUser>> = Vec::new();
    let mut places: BTreeMap<(Option<&str>, Vec<String>), usize> = BTreeMap::new();
    for user in users {
        let mut groups: Vec<String> = user.groups.iter().map(PlainName::key).collect();
        groups.sort();
        let key = (user.image.as_deref(), groups);
        let place = *places.entry(key).or_insert(order.len());
        match order.get_mut(place) {
            Some(batch) => batch.push(user),
            None => order.push(vec![user]),
        }
    }
    let chunks = order.iter().flat_map(|batch| batch.chunks(CHUNK));
    chunks.map(<[&NewUser]>::to_vec).collect()
}

/// Body of the request for a batch.
fn body(batch: &[&NewUser]) -> Value {
    let names: Vec<&str> = batch.iter().map(|user| user.name.as_str()).collect();
    let mut body = json!({ "usernames": names, "wait": 0 });
    if batch.iter().any(|user| user.password.is_some()) {
        let password = |user: &&NewUser| match &user.password {
            Some(password) => password.expose_secret().to_owned(),
            None => String::new(),
        };
        body["passwords"] = batch.iter().map(password).collect();
    }
    if let Some(user) = batch.first() {
        if let Some(image) = &user.image {
            body["image_tag"] = json!(image);
        }
        let groups: Vec<&str> = user.groups.iter().map(PlainName::as_str).collect();
        if !groups.is_empty() {
            body["groups"] = json!(groups);
        }
    }
    body
}

/// A creation that is under way.
struct Creation<'a> {
    server: &'a Server,
    credentials: Credentials,
    total: usize,
    created: usize,
    failed: bool,
    /// Tasks of the containers.
    tasks: Vec<String>,
}

impl Creation<'_> {
    async fn send_all(&mut self, users: &[NewUser]) -> Result {
        let batches = batches(users);
        let several = batches.len() > 1;
        for (index, batch) in batches.iter().enumerate() {
            match self.server.post(PATH, &body(batch)).await {
                Ok(answer) => self.take(&answer)?,
                Err(failure @ (Failure::Failed(_) | Failure::NotFound(_))) if several => {
                    self.failed = true;
                    for user in batch {
                        screen::note(&format!("error: user/{}: {failure}", user.name));
                    }
                }
                Err(failure @ Failure::Unavailable(_)) => {
                    let first = batch.first().map(|user| user.name.as_str());
                    let first = first.unwrap_or_default();
                    screen::note(&format!(
                        "{} of {} created; users from {first} on were not created, or their passwords are lost: `{} get users` lists those that exist",
                        self.created,
                        counted(self.total as u64, "user"),
                        self.server.command
                    ));
                    return Err(failure);
                }
                Err(failure) => return Err(failure),
            }
            if index + 1 < batches.len() {
                let total = counted(self.total as u64, "user");
                screen::note(&format!("{} of {total} created", self.created));
            }
        }
        Ok(())
    }

    /// Takes what the server answered for a batch.
    fn take(&mut self, answer: &Value) -> Result {
        let mut generated = Vec::new();
        for result in answer["results"].as_array().into_iter().flatten() {
            let name = text(result, "username");
            if result["success"] != true {
                self.failed = true;
                screen::note(&format!(
                    "error: user/{}: {}",
                    clean(&name),
                    cleaned(result, "error")
                ));
                continue;
            }
            self.created += 1;
            if let Some(password) = result["password"].as_str() {
                generated.push((name, password.to_owned()));
            }
        }
        if let Some(task) = answer["task_id"].as_str() {
            self.tasks.push(task.to_owned());
        }
        self.credentials.write(&generated)
    }

    /// Waits for the containers of created users, even if some were not created.
    async fn finish(self, made: Result, detach: bool) -> Result {
        let Self {
            server,
            credentials,
            total,
            created,
            mut failed,
            tasks,
        } = self;
        credentials.finish();
        made?;
        let total = counted(total as u64, "user");
        screen::note(&format!("{created} of {total} created"));
        for task in tasks {
            if detach {
                let command = &server.command;
                screen::note(&format!("`{command} get task {task}` shows the containers"));
                continue;
            }
            let failures = follow_task(server, &task).await?;
            failed |= !failures.is_empty();
            report_failures("container", &failures);
        }
        match failed {
            true => Err(Failure::Reported),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(text: &str) -> Vec<NewUser> {
        let mut problems = Problems::default();
        let users = file::parse(text, &mut problems);
        assert_eq!(problems.describe(), None);
        users
    }

    #[test]
    fn users_with_equal_image_and_groups_are_one_request() {
        let users = users(
            "username,password,image,groups\na,correct horse,,dev;ops\nb,,2,\nc,,,Ops;dev\nd,,2,\n",
        );
        let batches = batches(&users);
        let bodies: Vec<Value> = batches.iter().map(|batch| body(batch)).collect();
        let expected = [
            json!({"usernames": ["a", "c"], "passwords": ["correct horse", ""], "groups": ["dev", "ops"], "wait": 0}),
            json!({"usernames": ["b", "d"], "image_tag": "2", "wait": 0}),
        ];
        assert_eq!(bodies, expected);
    }

    #[test]
    fn many_users_are_several_requests() {
        let names: String = (0..250).map(|number| format!("u{number}\n")).collect();
        let users = users(&names);
        let sizes: Vec<usize> = batches(&users).iter().map(Vec::len).collect();
        assert_eq!(sizes, [100, 100, 50]);
    }
}
