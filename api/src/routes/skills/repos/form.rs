//! The fields of a repository to add or to change.

use std::collections::BTreeSet;

use schema::ids::PlainName;
use schema::skill_repository::{
    Credential, GitRef, NewRepository, Provider, RefType, RepositoryRow, RepositoryUrl,
};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use utoipa::ToSchema;

use super::parsed;
use crate::error::{ApiError, Result};
use crate::routes::params::given;

/// A credential to store.
#[derive(Clone, Deserialize, ToSchema)]
#[schema(as = RepositoryCredentialForm)]
pub struct CredentialForm {
    /// Its name.
    #[serde(default)]
    name: String,
    /// Who runs the server; default: other.
    provider: Option<Provider>,
    /// The user name; default: the provider's.
    #[serde(default)]
    username: String,
    /// A password or token, with SSH a private key; absent: the stored one of this name.
    #[schema(value_type = Option<String>, format = Password)]
    secret: Option<SecretString>,
}

impl std::fmt::Debug for CredentialForm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CredentialForm([REDACTED])")
    }
}

/// The fields of a repository.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[schema(as = RepositoryForm)]
pub struct Fields {
    /// Its name.
    #[schema(value_type = Option<PlainName>)]
    name: Option<String>,
    /// Where it is: `https://`, `http://`, `ssh://` or `git@host:path`.
    #[schema(value_type = Option<RepositoryUrl>)]
    url: Option<String>,
    /// The branch or tag; default: main.
    #[serde(rename = "ref")]
    #[schema(value_type = Option<GitRef>)]
    reference: Option<String>,
    /// Which of both; default: branch.
    ref_type: Option<RefType>,
    /// It is read without credentials; default: when there are none.
    public: Option<bool>,
    /// Who may read it; they are tried in this order.
    credentials: Option<Vec<CredentialForm>>,
    /// The same as JSON, in one field.
    #[serde(skip_serializing)]
    #[schema(value_type = Option<String>, example = "{\"name\": \"team\", \"url\": \"https://git.example.com/team/skills.git\"}")]
    repo: Option<SecretString>,
    /// Trust the key that the host shows next.
    #[serde(default)]
    pub(super) forget_host_key: bool,
}

/// Most credentials of a repository.
const CREDENTIALS: usize = 10;

impl Fields {
    /// What `repo` says, if it is there.
    pub(super) fn flat(self) -> Result<Self> {
        let Some(text) = &self.repo else {
            return Ok(self);
        };
        // The text may hold a secret, so what is wrong with it is not quoted.
        let parsed: Self = serde_json::from_str(text.expose_secret()).map_err(|error| {
            let place = format!("line {}, column {}", error.line(), error.column());
            let rule = format!("repo is a repository as a JSON object; see {place}");
            ApiError::invalid("repo", rule)
        })?;
        Ok(parsed)
    }

    fn required<'a>(field: &str, value: &'a Option<String>) -> Result<&'a str> {
        given(value).ok_or_else(|| ApiError::invalid(field, format!("{field} is required")))
    }

    pub(super) fn name(&self) -> Result<PlainName> {
        parsed("name", Self::required("name", &self.name)?)
    }

    /// The repository, as it is or as it becomes.
    pub(super) fn repository(
        &self,
        name: PlainName,
        before: Option<&RepositoryRow>,
    ) -> Result<NewRepository> {
        let url = match (given(&self.url), before) {
            (Some(url), _) => parsed("url", url)?,
            (None, Some(before)) => before.url.clone(),
            (None, None) => return Err(ApiError::invalid("url", "url is required")),
        };
        let reference = match (given(&self.reference), before) {
            (Some(reference), _) => parsed("ref", reference)?,
            (None, Some(before)) => before.reference.clone(),
            (None, None) => parsed("ref", "main")?,
        };
        let before_type = before.map(|before| before.ref_type);
        let ref_type = self.ref_type.or(before_type).unwrap_or(RefType::Branch);
        let none = self.credentials.as_ref().is_none_or(Vec::is_empty);
        let public = match (self.public, before) {
            (Some(public), _) => public,
            (None, Some(before)) if self.credentials.is_none() => before.public,
            (None, _) => none,
        };
        Ok(NewRepository {
            name,
            url,
            reference,
            ref_type,
            public,
        })
    }

    /// The credentials, with the stored secrets of those that were sent without one.
    pub(super) fn credentials(
        &self,
        stored: Vec<Credential>,
        same_host: bool,
    ) -> Result<Vec<Credential>> {
        let required = || {
            let message = "the repository's address has another host; send the secrets of its credentials again, or remove them";
            ApiError::unprocessable("secret_required", message)
        };
        let Some(sent) = &self.credentials else {
            return match stored.is_empty() || same_host {
                true => Ok(stored),
                false => Err(required()),
            };
        };
        if sent.len() > CREDENTIALS {
            let rule = "a repository has at most 10 credentials";
            return Err(ApiError::invalid("credentials", rule));
        }
        let names: BTreeSet<&str> = sent.iter().map(|form| form.name.as_str()).collect();
        if names.len() < sent.len() {
            let rule = "credentials of one repository have different names";
            return Err(ApiError::invalid("credentials", rule));
        }
        let credential = |form: &CredentialForm| {
            let texts = [&form.name, &form.username];
            if texts
                .iter()
                .any(|text| text.len() > 256 || text.chars().any(char::is_control))
            {
                let rule = "name and username of credentials have at most 256 bytes and no control characters";
                return Err(ApiError::invalid("credentials", rule));
            }
            let secret = form
                .secret
                .clone()
                .filter(|it| !it.expose_secret().is_empty());
            let secret = match secret {
                Some(secret) => secret,
                None => {
                    let kept = stored.iter().find(|it| it.name == form.name);
                    let Some(kept) = kept else {
                        let rule = format!("credentials: {:?} has no secret", form.name);
                        return Err(ApiError::invalid("credentials", rule));
                    };
                    if !same_host {
                        return Err(required());
                    }
                    kept.secret.clone()
                }
            };
            Ok(Credential {
                name: form.name.clone(),
                provider: form.provider.unwrap_or(Provider::Other),
                username: form.username.clone(),
                secret,
            })
        };
        sent.iter().map(credential).collect()
    }
}

/// Somebody can read it.
pub(super) fn readable(repository: &NewRepository, credentials: &[Credential]) -> Result<()> {
    if repository.public || !credentials.is_empty() {
        return Ok(());
    }
    let rule = "a repository that is not public needs credentials";
    Err(ApiError::invalid("credentials", rule))
}
