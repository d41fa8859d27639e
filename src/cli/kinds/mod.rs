//! The kinds of things that can be listed: their names, where the server lists them, the columns of their
//! tables. Reconciled kinds come from their descriptors; [`table`] has the others.

mod table;

use std::borrow::Cow;
use std::sync::LazyLock;

use schema::ids::Kind;
use schema::kind::{self, Column, Listing};
use serde_json::Value;
use strum::VariantArray;

use self::table::OTHERS;
pub use self::table::{
    API_TOKENS, ARCHIVES, AUDIT, BACKUPS, CONFIG_HISTORY, CONTEXTS, EVENTS, GROUP_MEMBERS, GROUPS,
    LOCAL_IMAGES, OFFERED_SKILLS, RECONCILERS, RESOURCE_USE, ROLLOUT_USERS, SESSIONS,
    SKILL_CHANGES, SKILL_VERSIONS, SUPERADMINS, TASKS,
};
use super::output::cell::text;
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
    pub path: Cow<'static, str>,
    /// Under which name the answer holds the list.
    pub list: &'static str,
    /// How the server hands out the list.
    pub paging: Paging,
    /// The field that names one.
    pub id: &'static str,
    /// The reconciled objects whose changes the server reports and that change a line of this list; without any,
    /// the list is polled.
    pub watched: Vec<Kind>,
    columns: Cow<'static, [Column]>,
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

/// Reconciled kinds.
static RECONCILED: LazyLock<Vec<KindInfo>> = LazyLock::new(|| {
    let kinds = Kind::VARIANTS.iter().copied();
    kinds.map(KindInfo::reconciled).collect()
});
/// The objects of all reconciled kinds, whose name is `kind/name`.
pub static OBJECTS: LazyLock<KindInfo> = LazyLock::new(KindInfo::objects);

/// All kinds, in the order of the help.
pub fn all() -> impl Iterator<Item = &'static KindInfo> {
    RECONCILED.iter().chain([&*OBJECTS]).chain(OTHERS)
}

impl KindInfo {
    fn reconciled(kind: Kind) -> Self {
        let descriptor = kind.descriptor();
        let (path, list, id) = match descriptor.listing {
            Some(Listing { path, list, id }) => (Cow::Borrowed(path), list, id),
            None => {
                let path = format!("/api/admin/reconcile/objects?reconciler={kind}");
                (Cow::Owned(path), "objects", "name")
            }
        };
        let shown_here = |other: &&Kind| {
            let is_part = descriptor.parts.contains(other);
            **other == kind || is_part || other.descriptor().shown_with == Some(kind)
        };
        Self {
            singular: kind.as_str(),
            plural: descriptor.plural,
            short: descriptor.short,
            path,
            list,
            paging: Paging::Searched,
            id,
            watched: Kind::VARIANTS.iter().filter(shown_here).copied().collect(),
            columns: Cow::Borrowed(descriptor.columns),
        }
    }

    fn objects() -> Self {
        let mut columns = vec![Column::text("OBJECT", "object")];
        let others = kind::OBJECT_COLUMNS.iter().copied();
        columns.extend(others.filter(|column| column.field != kind::NAME.field));
        Self {
            singular: "object",
            plural: "objects",
            short: &["o", "all"],
            path: Cow::Borrowed("/api/admin/reconcile/objects"),
            list: "objects",
            paging: Paging::Searched,
            id: "object",
            watched: Kind::VARIANTS.to_vec(),
            columns: Cow::Owned(columns),
        }
    }

    /// Its name as it is typed for a list: in one word.
    pub fn typed(&self) -> &'static str {
        if self.plural.contains(' ') {
            self.singular
        } else {
            self.plural
        }
    }

    /// The columns of its table.
    pub fn columns(&self, wide: bool) -> impl Iterator<Item = &Column> + Clone {
        let shown = move |column: &&Column| wide || !column.wide;
        self.columns.iter().filter(shown)
    }

    /// The name of one.
    pub fn name(&self, item: &Value) -> String {
        text(item, self.id)
    }

    /// `kind/name` of one.
    pub fn address(&self, item: &Value) -> String {
        // Objects of all kinds are listed by that already.
        if self.singular == "object" {
            return self.name(item);
        }
        format!("{}/{}", self.singular, self.name(item))
    }

    /// Returns true if the server lists those alone that are not ready.
    pub fn lists_unready(&self) -> bool {
        let own_list = self.singular.parse().ok();
        let own_list = own_list.and_then(|kind: Kind| kind.descriptor().listing);
        self.list == "objects" || own_list.is_some_and(|list| list.list == "users")
    }

    /// Whether it is reconciled: has conditions, can be retried, paused and waited for.
    pub fn is_object(&self) -> bool {
        self.singular.parse::<Kind>().is_ok()
    }
}

/// Finds a kind by any of its names.
pub fn named(name: &str) -> Option<&'static KindInfo> {
    let name = name.to_ascii_lowercase();
    all().find(|kind| {
        kind.singular == name || kind.plural == name || kind.short.contains(&name.as_str())
    })
}

/// Reads a kind from the command line.
///
/// # Errors
/// A sentence with what may have been meant.
pub fn parse(name: &str) -> Result<&'static KindInfo, String> {
    named(name).ok_or_else(|| {
        let names = all().flat_map(|kind| [kind.plural, kind.singular]);
        let guess = suggest::closest(name, names);
        let kinds: Vec<&str> = all().map(KindInfo::typed).collect();
        format!(
            "unknown kind {name:?}{}; kinds are {}",
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
    let kinds: Vec<&str> = Kind::VARIANTS.iter().map(|kind| kind.as_str()).collect();
    Err(format!(
        "{} are not reconciled; name one of the kinds {}",
        kind.plural,
        kinds.join(", ")
    ))
}

/// Help text: all kinds with their short names.
pub fn help() -> String {
    let mut text = "Kinds:\n".to_owned();
    for kind in all() {
        let names = [&[kind.singular], kind.short].concat().join(", ");
        text += &format!("  {:<18} {names}\n", kind.typed());
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_name_means_one_kind() {
        let mut names = BTreeSet::new();
        for kind in all() {
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
        let objects = named("objects").unwrap();
        assert!(!objects.is_object());
        for kind in Kind::VARIANTS {
            let info = named(kind.as_str()).unwrap_or_else(|| panic!("{kind} is missing"));
            assert!(info.is_object(), "{kind}");
            assert!(info.watched.contains(kind), "{kind}");
            assert!(objects.watched.contains(kind), "{kind}");
        }
        for kind in all().filter(|kind| kind.is_object()) {
            assert!(kind.singular.parse::<Kind>().is_ok(), "{}", kind.singular);
        }
        // A user's line shows the health of all that belongs to the user.
        let watched = [
            Kind::User,
            Kind::Container,
            Kind::AgentConfig,
            Kind::SkillSet,
        ];
        assert_eq!(named("user").unwrap().watched, watched);
        assert_eq!(named("container").unwrap().watched, [Kind::Container]);
        let titles: Vec<&str> = objects.columns(true).map(|column| column.title).collect();
        assert_eq!(titles[..3], ["OBJECT", "READY", "REASON"]);
    }
}
