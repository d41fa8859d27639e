//! Arguments of `get`: kinds, and names of objects of one or several kinds.

use crate::cli::kinds::{self, KindInfo};
use crate::cli::target::Thing;
use crate::cli::{Failure, Result};

/// Objects of one kind.
#[derive(Debug)]
pub struct Wanted {
    /// The kind.
    pub kind: &'static KindInfo,
    /// Names of objects; none: all of the kind.
    pub names: Vec<String>,
}

/// Reads `users`, `users,groups`, `user alice bob` and `user/alice container/bob`. Names are gathered by kind, in the order of
/// their kinds.
///
/// # Errors
/// [`Failure::Usage`] for unknown kinds, and for names beside several kinds.
pub fn read(what: &str, names: Vec<String>) -> Result<Vec<Wanted>> {
    if what.contains(',') && !what.contains('/') {
        return read_kinds(what, &names);
    }
    let mut all = Vec::new();
    if what.contains('/') {
        add(&mut all, what.parse().map_err(Failure::Usage)?);
    } else {
        let kind = kinds::parse(what).map_err(Failure::Usage)?;
        all.push(Wanted {
            kind,
            names: Vec::new(),
        });
    }
    for name in names {
        let thing = read_name(&all, name)?;
        add(&mut all, thing);
    }
    let is_mixed = all.len() > 1;
    all.retain(|wanted| !(is_mixed && wanted.names.is_empty()));
    Ok(all)
}

fn read_kinds(what: &str, names: &[String]) -> Result<Vec<Wanted>> {
    if !names.is_empty() {
        let why = "several kinds take no names; name objects as KIND/NAME, such as user/alice container/bob";
        return Err(Failure::Usage(why.to_owned()));
    }
    let mut all: Vec<Wanted> = Vec::new();
    for name in what.split(',').filter(|name| !name.is_empty()) {
        let kind = kinds::parse(name).map_err(Failure::Usage)?;
        if all
            .iter()
            .all(|wanted| wanted.kind.singular != kind.singular)
        {
            all.push(Wanted {
                kind,
                names: Vec::new(),
            });
        }
    }
    match all.is_empty() {
        true => Err(Failure::Usage("name a kind, such as users".to_owned())),
        false => Ok(all),
    }
}

/// A further name may be written as `kind/name`, as `-o name` prints it; else it is one of the first kind.
fn read_name(all: &[Wanted], name: String) -> Result<Thing> {
    let Some(Wanted { kind, .. }) = all.first() else {
        return name.parse().map_err(Failure::Usage);
    };
    let of_first = |name: String| Thing { kind, name };
    match name.split_once('/') {
        Some((prefix, _)) if kind.singular != "object" && kinds::named(prefix).is_some() => {
            name.parse().map_err(Failure::Usage)
        }
        _ => Ok(of_first(name)),
    }
}

fn add(all: &mut Vec<Wanted>, thing: Thing) {
    let Thing { kind, name } = thing;
    let same = |wanted: &&mut Wanted| wanted.kind.singular == kind.singular;
    match all.iter_mut().find(same) {
        Some(wanted) => wanted.names.push(name),
        None => all.push(Wanted {
            kind,
            names: vec![name],
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> Result<Vec<String>, String> {
        let mut words = line.split_whitespace().map(str::to_owned);
        let what = words.next().unwrap();
        let all = read(&what, words.collect()).map_err(|failure| failure.to_string())?;
        let shown = all
            .iter()
            .map(|Wanted { kind, names }| match names.is_empty() {
                true => kind.singular.to_owned(),
                false => format!("{}={}", kind.singular, names.join("+")),
            });
        Ok(shown.collect())
    }

    #[test]
    fn kinds_and_names_are_gathered() {
        for (line, expected) in [
            ("users", &["user"] as &[&str]),
            ("users,ct,groups,u", &["user", "container", "group"]),
            ("user alice bob", &["user=alice+bob"]),
            ("containers bob container/alice", &["container=bob+alice"]),
            (
                "user/alice container/bob u/carol",
                &["user=alice+carol", "container=bob"],
            ),
            ("user/alice bob", &["user=alice+bob"]),
            ("users container/bob", &["container=bob"]),
            ("objects user/alice", &["object=user/alice"]),
            ("all", &["object"]),
        ] {
            assert_eq!(shown(line).unwrap(), expected, "{line}");
        }
        for (line, part) in [
            ("containerz", "\"container\""),
            ("users,containerz", "\"container\""),
            ("users,containers alice", "KIND/NAME"),
            (",", "name a kind"),
            ("container/", "kind/name"),
        ] {
            let why = shown(line).unwrap_err();
            assert!(why.contains(part), "{line}: {why}");
        }
    }
}
