//! The kinds of things that can be listed: how they are called, where the server has them, and which
//! columns tell about them. All commands read this one table.

mod table;

use schema::ids::Timestamp;
use serde_json::Value;

pub use self::table::{CONFIG_HISTORY, KINDS, LOCAL_IMAGES, ROLLOUT_USERS};
use super::output::cell::{Cell, plain};
use super::suggest;

/// One kind.
#[derive(Debug)]
pub struct KindInfo {
    /// `container`, as in `container/alice`.
    pub singular: &'static str,
    /// `containers`.
    pub plural: &'static str,
    /// Short names.
    short: &'static [&'static str],
    /// Where the server lists them.
    pub path: &'static str,
    /// Under which name the answer holds the list.
    pub list: &'static str,
    /// How the server hands out the list.
    pub paging: Paging,
    /// The field that names one.
    id: &'static str,
    /// What they are.
    pub change: Changes,
    columns: &'static [Column],
}

/// How the server hands out a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paging {
    /// In pages, and it searches.
    Searched,
    /// In pages only.
    Pages,
    /// Everything at once.
    Whole,
}

/// How changes are heard of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changes {
    /// Reconciled objects: the server tells, naming objects of these kinds.
    Told(&'static [&'static str]),
    /// By looking again.
    Looked,
}

/// One column of a table.
#[derive(Debug)]
pub struct Column {
    /// Its title.
    pub title: &'static str,
    wide: bool,
    /// Its value.
    pub cell: fn(&Value, Timestamp) -> Cell,
}

impl KindInfo {
    /// The columns of its table.
    pub fn columns(&self, wide: bool) -> impl Iterator<Item = &'static Column> + use<> {
        self.columns
            .iter()
            .filter(move |column| wide || !column.wide)
    }

    /// The field that names one.
    pub fn id(&self) -> &'static str {
        self.id
    }

    /// The name of one.
    pub fn name(&self, item: &Value) -> String {
        item.get(self.id).map(plain).unwrap_or_default()
    }

    /// `kind/name` of one.
    pub fn address(&self, item: &Value) -> String {
        // Objects of all kinds are listed by that already.
        if self.singular == "object" {
            return self.name(item);
        }
        format!("{}/{}", self.singular, self.name(item))
    }

    /// Whether it is reconciled: has conditions, can be retried, paused and waited for.
    pub fn is_object(&self) -> bool {
        matches!(self.change, Changes::Told([own]) if *own == self.singular)
            || self.singular == "user"
    }
}

/// Finds a kind by any of its names.
pub fn named(name: &str) -> Option<&'static KindInfo> {
    let name = name.to_ascii_lowercase();
    KINDS.iter().find(|kind| {
        kind.singular == name || kind.plural == name || kind.short.contains(&name.as_str())
    })
}

/// Reads a kind from the command line.
///
/// # Errors
/// A sentence with what may have been meant.
pub fn parse(name: &str) -> Result<&'static KindInfo, String> {
    named(name).ok_or_else(|| {
        let names = KINDS.iter().flat_map(|kind| [kind.plural, kind.singular]);
        let guess = suggest::closest(name, names);
        let kinds: Vec<&str> = KINDS.iter().map(|kind| kind.plural).collect();
        format!(
            "there is no kind {name:?}{}; kinds are {}",
            suggest::did_you_mean(&guess),
            kinds.join(", ")
        )
    })
}

/// Reads a kind of reconciled objects from the command line.
///
/// # Errors
/// A sentence with what may have been meant.
pub fn parse_object(name: &str) -> Result<&'static KindInfo, String> {
    let kind = parse(name)?;
    if kind.is_object() {
        return Ok(kind);
    }
    let kinds = KINDS.iter().filter(|kind| kind.is_object());
    let kinds: Vec<&str> = kinds.map(|kind| kind.singular).collect();
    Err(format!(
        "{} are not reconciled; name one of the kinds {}",
        kind.plural,
        kinds.join(", ")
    ))
}

/// Help text: all kinds with their short names.
pub fn help() -> String {
    let mut text = "Kinds:\n".to_owned();
    for kind in KINDS {
        let names = [&[kind.singular], kind.short].concat().join(", ");
        text += &format!("  {:<12} ({names})\n", kind.plural);
    }
    text
}

/// The condition of this type.
pub fn condition<'a>(item: &'a Value, of_type: &str) -> Option<&'a Value> {
    let conditions = item.get("conditions")?.as_array()?;
    conditions
        .iter()
        .find(|condition| condition.get("type").and_then(Value::as_str) == Some(of_type))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use schema::ids::Kind;
    use strum::VariantArray;

    use super::*;

    #[test]
    fn every_name_means_one_kind() {
        let mut names = BTreeSet::new();
        for kind in KINDS {
            let own: BTreeSet<&str> = [&[kind.singular, kind.plural], kind.short]
                .concat()
                .into_iter()
                .collect();
            for name in own {
                assert!(names.insert(name), "{name}");
            }
        }
        assert_eq!(parse("Containers").unwrap().singular, "container");
        let wrong = parse("containerz").unwrap_err();
        assert!(wrong.contains("did you mean \"container\""), "{wrong}");
        assert!(
            parse("xyz")
                .unwrap_err()
                .contains("kinds are users, containers")
        );
        assert!(
            parse_object("tasks")
                .unwrap_err()
                .contains("user, container, engine")
        );
    }

    #[test]
    fn every_reconciled_kind_is_here() {
        let all = named("objects").unwrap();
        for kind in Kind::VARIANTS {
            let info = named(kind.as_str()).unwrap_or_else(|| panic!("{kind} is missing"));
            assert!(info.is_object(), "{kind}");
            let Changes::Told(told) = all.change else {
                panic!("objects are watched");
            };
            assert!(told.contains(&kind.as_str()), "{kind}");
        }
        for kind in KINDS.iter().filter(|kind| kind.is_object()) {
            assert!(kind.singular.parse::<Kind>().is_ok(), "{}", kind.singular);
        }
    }
}
