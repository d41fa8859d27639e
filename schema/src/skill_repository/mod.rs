//! Repositories of skills: where one is, what is desired of it, and what was fetched.
//!
//! What the types of addresses and references accept can be given to `git` and `ssh` without being taken for an option, another
//! program or a local file (L28), and holds no secret: those belong into the credentials of the repository, which are sealed.

mod checkout;
#[cfg(test)]
mod checkout_tests;
mod model;
mod offer;
mod provider;
pub(crate) mod query;
mod reference;
mod url;

use crate::kind::{self, Column, Descriptor, Listing};

pub use checkout::{Checkouts, GIT_SCRATCH, NewCheckout};
pub use model::{
    Credential, LISTING, NewRepository, OfferedSkill, RepositoryFacts, RepositoryListing,
    RepositoryRow,
};
pub use offer::Offer;
pub use provider::Provider;
pub use query::{
    all, cancel_pull, credentials, delete, find, forget_host_key, get, get_whole, list,
    listed_credentials, lock, purge, request_pull, save, save_facts,
};
pub use reference::{GIT_REF_RULE, GitRef, RefType};
pub use url::{InvalidRepositoryUrl, RepositoryUrl, Scheme};

pub(crate) const KIND: Descriptor = Descriptor {
    finalizer: Some(query::FINALIZER),
    listing: Some(Listing {
        path: "/api/admin/skills/repos/list",
        list: "repos",
        id: "name",
    }),
    columns: &[
        kind::NAME,
        kind::READY,
        kind::REASON,
        Column::text("URL", "url"),
        Column::text("REF", "ref"),
        Column::digest("COMMIT", "commit"),
        Column::text("SKILLS", "skill_count"),
        Column::age("PULLED", "last_pull"),
        kind::MESSAGE,
    ],
    ..Descriptor::new("skill-repositories", &["sr"])
};
