//! What would change for agents with another package, in words.

use std::collections::{BTreeMap, BTreeSet};

use super::Adapter;
use super::model::{Agent, RunAs};

/// Most names that are listed of one kind.
const NAMED: usize = 20;
/// Most characters of a name.
const LONGEST: usize = 40;

impl Adapter {
    /// What changes for agents when `newer` takes the place of this package: what containers run, with which environment and
    /// as whom, and which configuration versions are known. Names only: an administrator reads it before deciding.
    pub fn changes(&self, newer: &Adapter) -> String {
        let (old, new) = (&self.index.agent, &newer.index.agent);
        let mut changes = Vec::new();
        if old.command != new.command {
            changes.push("command".to_owned());
        }
        if old.debug_command != new.debug_command {
            changes.push("debug command".to_owned());
        }
        if old.run_as != new.run_as {
            let [old, new] = [old, new].map(|agent| run_as(agent.run_as));
            changes.push(format!("run_as ({old} to {new})"));
        }
        let versions = |adapter: &Adapter| -> BTreeSet<u32> {
            adapter.config_schemas.keys().copied().collect()
        };
        let (before, after) = (versions(self), versions(newer));
        if before != after {
            let (before, after) = (list(&before), list(&after));
            changes.push(format!("configuration versions ({before} to {after})"));
        }
        // Last, because it may be long, and conditions are cut.
        changes.extend(environment(old, new));
        if changes.is_empty() {
            return "neither command, environment, run_as nor configuration versions".to_owned();
        }
        changes.join(", ")
    }
}

fn environment(old: &Agent, new: &Agent) -> Option<String> {
    let (old, new) = (&old.environment, &new.environment);
    let only = |these: &BTreeMap<String, String>, those: &BTreeMap<String, String>| {
        let names = these.keys().filter(|name| !those.contains_key(*name));
        names.cloned().collect::<BTreeSet<_>>()
    };
    let differs =
        |(name, value): &(&String, &String)| old.get(*name).is_some_and(|before| before != *value);
    let changed = new.iter().filter(differs).map(|(name, _)| name.clone());
    let kinds = [
        ("added", only(new, old)),
        ("changed", changed.collect()),
        ("removed", only(old, new)),
    ];
    let kinds = kinds.iter().filter(|(_, names)| !names.is_empty());
    let said: Vec<String> = kinds
        .map(|(kind, names)| format!("{kind}: {}", list(names)))
        .collect();
    (!said.is_empty()).then(|| format!("environment ({})", said.join("; ")))
}

fn list<T: ToString>(items: &BTreeSet<T>) -> String {
    let short = |item: &T| item.to_string().chars().take(LONGEST).collect();
    let mut named: Vec<String> = items.iter().take(NAMED).map(short).collect();
    if items.len() > NAMED {
        named.push("…".to_owned());
    }
    named.join(", ")
}

fn run_as(run_as: RunAs) -> String {
    match run_as {
        RunAs::Service => "service".to_owned(),
        RunAs::Image => "image".to_owned(),
        RunAs::Ids(user, group) => format!("{user}:{group}"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn what_changes_with_another_package_is_said_in_words() {
        let old = Adapter::builtin("picoclaw").unwrap().unwrap();
        let none = "neither command, environment, run_as nor configuration versions";
        assert_eq!(old.changes(&old), none);
        let mut new = old.clone();
        let agent = Arc::make_mut(&mut new.index.agent);
        agent.command = None;
        agent.run_as = RunAs::Ids(1000, 1001);
        agent.environment.remove("PICOCLAW_HOME");
        let at = "PICOCLAW_GATEWAY_HOST".to_owned();
        agent.environment.insert(at, "hunter2".to_owned());
        agent.environment.insert("NEW".to_owned(), "x".to_owned());
        new.config_schemas.remove(&1);
        assert_eq!(
            old.changes(&new),
            "command, run_as (service to 1000:1001), configuration versions (1, 2, 3 to 2, 3), \
             environment (added: NEW; changed: PICOCLAW_GATEWAY_HOST; removed: PICOCLAW_HOME)"
        );
    }

    #[test]
    fn of_many_names_the_first_are_listed() {
        let old = Adapter::builtin("echo").unwrap().unwrap();
        let mut new = old.clone();
        let agent = Arc::make_mut(&mut new.index.agent);
        for n in 100..10_000 {
            agent
                .environment
                .insert(format!("N{n}{}", "X".repeat(1000)), String::new());
        }
        let said = old.changes(&new);
        assert!(said.len() < 1000 && said.contains("…"), "{said}");
    }
}
