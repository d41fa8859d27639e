//! Repositories of skills: where one is, and what of it is wanted, as an administrator writes it.
//!
//! What these types accept can be given to `git` and `ssh` without being taken for an option, another program or a local
//! file (L28), and holds no secret: those belong into the credentials of the repository.

mod provider;
mod reference;
mod url;

pub use provider::Provider;
pub use reference::{GIT_REF_RULE, GitRef, InvalidGitRef, RefType};
pub use url::{InvalidRepositoryUrl, RepositoryUrl, Scheme};
