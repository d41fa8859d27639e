//! A directory of people and groups, as LDAP shows it (RFC 4511).
//!
//! What a directory says is not trusted to be all there is: an answer that was cut short is an error, never a shorter list,
//! since whoever is missing in a list loses an account by it (L1). Names are looked up over a connection of the service that is
//! kept, on which requests do not wait for each other. Whoever signs in binds on a connection of their own, and so does a list,
//! since servers remember one list for each connection.

mod check;
mod connect;
mod dn;
mod error;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod groups;
mod identity;
mod list;
mod membership;
mod real;
mod search;
mod wire;

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;

use async_trait::async_trait;
use secrecy::{ExposeSecret, SecretString};

pub use check::{Check, CheckedGroup, Step};
pub use dn::key as dn_key;
pub use error::DirectoryError;
pub use identity::OF_SERVERS as ID_ATTRIBUTES_OF_SERVERS;
pub use real::LdapDirectory;

/// Where a directory is, and how it is asked.
#[derive(Debug, Clone)]
pub struct DirectorySettings {
    /// `ldap://host[:port]` or `ldaps://host[:port]`.
    pub url: url::Url,
    /// Encrypt a connection of `ldap` before anything is sent over it (RFC 4511 §4.14).
    pub start_tls: bool,
    /// Certificates in PEM that are trusted besides those of the system.
    pub ca_certificate: Option<String>,
    /// Whom the service binds as; empty: anonymously.
    pub bind_dn: String,
    /// The password of that.
    pub bind_password: SecretString,
    /// Below which users are searched.
    pub base_dn: String,
    /// Finds a user; `{{username}}` stands for the name.
    pub filter: String,
    /// The attribute with the name.
    pub username_attribute: String,
    /// The attributes that identify an entry whatever its name is: the first that it has. None: entries are known by their names.
    pub id_attributes: Vec<String>,
    /// How a user's groups are found.
    pub groups: GroupSearch,
    /// Longest time of one step: a connection, a request, the next part of an answer.
    pub timeout: Duration,
    /// How many entries are asked for at once.
    pub page_size: NonZeroU32,
    /// Longest message of the directory that is accepted, in bytes.
    pub max_message: usize,
}

impl DirectorySettings {
    /// Whether a connection of the service that was made for the others is good for these.
    fn connect_as(&self, other: &Self) -> bool {
        let key = |it: &Self| {
            (
                it.url.clone(),
                it.start_tls,
                it.ca_certificate.clone(),
                it.bind_dn.clone(),
                it.timeout,
                it.max_message,
            )
        };
        key(self) == key(other)
            && self.bind_password.expose_secret() == other.bind_password.expose_secret()
    }
}

/// How the groups of users are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupSearch {
    /// Users name their groups in `memberOf`.
    MemberOf {
        /// Groups lie below this DN. What users name besides, such as roles and rules, is left out. `None`: all are groups.
        base_dn: Option<String>,
    },
    /// Groups name their members.
    Groups {
        /// Below which groups are searched.
        base_dn: String,
        /// Finds a group; `{{groupname}}` stands for the name.
        filter: String,
        /// The attribute with the members: their DNs, or their names.
        member_attribute: String,
    },
}

/// Somebody whom the directory knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The distinguished name.
    pub dn: String,
    /// The user name, as the directory writes it.
    pub name: String,
    /// What identifies the entry whatever its name is, as `<attribute>:<value>`; `None`: that is not known.
    pub identity: Option<String>,
    /// The names of the groups, those of groups in groups included. `None`: they are not known.
    pub groups: Option<BTreeSet<String>>,
}

/// Everybody, and all groups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// All users that the filter of users finds, except those in `left_out`.
    pub people: Vec<Person>,
    /// Users are asked for what identifies their entries.
    pub with_identities: bool,
    /// The names of all groups; `None`: no user names any, which a server also does that hides them.
    pub groups: Option<BTreeSet<String>>,
    /// Entries of users that do not say which user they are.
    pub left_out: Vec<LeftOut>,
    /// Other parts of the directory that are not taken, with the reasons.
    pub notes: Vec<Note>,
}

/// An entry of a user that is left out of a list. The user is still there: no user with one of its names, its DN or what identifies it is
/// missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// The distinguished name.
    pub dn: String,
    /// The values of the attribute with the name, as far as they are texts.
    pub names: Vec<String>,
    /// What identifies it whatever its name is, as far as that is known.
    pub identities: Vec<String>,
    /// The names of the groups that it is in.
    pub groups: BTreeSet<String>,
    /// It may be in more groups, which can't be read.
    pub incomplete: bool,
    /// Reason for leaving it out, and the remedy.
    pub reason: String,
}

/// Something of a directory that is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Subject of the note, such as a DN or an attribute.
    pub name: String,
    /// Reason for not taking it, and the remedy.
    pub reason: String,
}

/// Users and groups that a check looks for; by default all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Only this user.
    pub user: Option<String>,
    /// Only this group.
    pub group: Option<String>,
    /// A few users and groups are enough: there may be more than can be listed while a person waits.
    pub few: bool,
}

/// Directories. No answer is an answer only if it is complete.
#[async_trait]
pub trait Directory: Send + Sync + 'static {
    /// Whoever has this name and this password. `None` for every reason for which somebody is not let in: an unknown name, one
    /// that several have, a wrong or empty password, a locked account. How long that takes may tell which it was.
    async fn sign_in(
        &self,
        settings: &DirectorySettings,
        name: &str,
        password: &SecretString,
    ) -> Result<Option<Person>, DirectoryError>;

    /// Everybody whom the filter of users finds, with their groups: over one connection, in as few requests as there are pages.
    async fn list(&self, settings: &DirectorySettings) -> Result<Listing, DirectoryError>;

    /// Whether these settings work, step by step.
    async fn check(&self, settings: &DirectorySettings, wanted: &Wanted) -> Check;
}
