//! Paths of this machine and of workspaces, as they are typed.

use std::path::PathBuf;
use std::str::FromStr;

use schema::ids::UserName;

/// A path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// On this machine.
    Local(PathBuf),
    /// In a user's workspace, relative to its top; without `/` at its ends.
    Workspace {
        /// The user.
        user: String,
        /// The path; empty for the top.
        path: String,
    },
}

impl FromStr for Place {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        if text == "-" {
            return Err("files only; use a path, or ./- for a file of this name");
        }
        let named = text.split_once(':');
        let named = named.filter(|(user, _)| user.parse::<UserName>().is_ok());
        Ok(match named {
            Some((user, path)) => {
                let parts = path.split('/').filter(|part| !["", "."].contains(part));
                Self::Workspace {
                    user: user.to_owned(),
                    path: parts.collect::<Vec<_>>().join("/"),
                }
            }
            None => Self::Local(text.into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_in_a_workspace_begins_with_a_user() {
        let within = |user: &str, path: &str| Place::Workspace {
            user: user.to_owned(),
            path: path.to_owned(),
        };
        for (text, expected) in [
            ("alice:", within("alice", "")),
            ("alice:/notes/", within("alice", "notes")),
            ("a.b@c:./x//y:z", within("a.b@c", "x/y:z")),
            ("notes", Place::Local("notes".into())),
            ("./a:b", Place::Local("./a:b".into())),
            ("/tmp/a:b", Place::Local("/tmp/a:b".into())),
            (":x", Place::Local(":x".into())),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        assert!("-".parse::<Place>().is_err());
    }
}
