//! What is kept of files before a migration, and when they come back: an image that reads the previous version,
//! and no migration that leads there. Pure.

use schema::adapter::{Found, RenderError, RenderedFile};
use schema::agent_config::{AgentConfigFacts, AgentConfigRow, KeptFiles};
use schema::condition::{Condition, Reason};
use schema::home::{FoundFile, NewFile};

use super::observe::Seen;
use super::plan::{Action, DesiredFiles, MODE, Why, render};
use crate::runtime::Plan;

/// Keeps the files as they are, of `config_version`, before they are migrated.
pub(super) fn keep(row: &AgentConfigRow, seen: &Seen, config_version: u32) -> Option<Action> {
    let bytes = |file: &Option<FoundFile>| file.as_ref().map(|found| found.bytes.clone());
    let files = KeptFiles {
        generation: row.generation,
        config_version,
        applied: row.facts.applied.clone(),
        config: bytes(&seen.config_file),
        security: bytes(&seen.security_file),
    };
    // A migration that was cut short has replaced the security file alone: what is kept is the older.
    let cut_short = seen.kept.as_ref().is_some_and(|kept| {
        row.facts.generation < kept.generation
            && kept.config_version == config_version
            && kept.config == files.config
    });
    (!cut_short).then(|| Action::KeepFiles(Box::new(files)))
}

/// The previous files, if they are of the version that the image reads. A migration that leads there is always
/// better, because it loses nothing; so this is asked only when there is none.
pub(super) fn put_back(
    row: &AgentConfigRow,
    seen: &Seen,
    error: &RenderError,
) -> Option<Plan<Action>> {
    let RenderError::NoMigrationPath(missing) = error else {
        return None;
    };
    let kept = seen
        .kept
        .as_ref()
        .filter(|kept| kept.config_version == missing.to)?;
    let found = Found {
        config: kept.config.as_deref(),
        security: kept.security.as_deref(),
    };
    let DesiredFiles { rendered, .. } = render(row, seen, kept.applied.as_ref(), found).ok()?;
    let agent = &seen.adapter.index.agent;
    let security = replace(
        &agent.security_file,
        rendered.security,
        kept.security.as_deref(),
        seen.security_file.as_ref(),
        MODE,
    );
    let mode = seen.config_file.as_ref().map_or(MODE, |found| found.mode);
    let config = replace(
        &agent.config_file,
        rendered.config,
        kept.config.as_deref(),
        seen.config_file.as_ref(),
        mode,
    );
    // The mark of the version is in the configuration file: it comes last.
    let files: Vec<NewFile> = security.into_iter().chain(config).collect();
    let facts = AgentConfigFacts {
        generation: row.generation,
        refused: None,
        applied: Some(rendered.applied),
        restart_digest: Some(rendered.restart_digest),
        home: Some(seen.home.clone()),
        put_back: true,
    };
    let mut actions = Vec::new();
    if !files.is_empty() {
        actions.push(Action::WriteFiles {
            name: row.name.clone(),
            files,
            why: Why::PutBack,
        });
    }
    actions.push(Action::SaveFacts(Box::new(facts)));
    let version = rendered.config_version;
    Some(Plan::act(
        actions,
        Condition::not_ready(
            Reason::Progressing,
            format!("putting the previous files back, configuration version {version}"),
        ),
    ))
}

/// Puts one file back. What nothing has to be changed in comes back byte by byte.
fn replace(
    path: &str,
    rendered: RenderedFile,
    kept: Option<&[u8]>,
    found: Option<&FoundFile>,
    mode: u32,
) -> Option<NewFile> {
    let bytes = match kept {
        Some(kept) if !rendered.changed => kept.to_vec(),
        // There was none, and there is nothing to say: what is there now is emptied.
        None if !rendered.changed && found.is_none() => return None,
        _ => rendered.bytes,
    };
    (found.map(|found| &found.bytes) != Some(&bytes)).then(|| NewFile {
        path: path.to_owned(),
        bytes,
        mode,
        expected: found.map(|found| found.stamp),
    })
}
