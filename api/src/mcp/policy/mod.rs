//! What agents may do: `mcp.policy`, in effect for each call.
//!
//! A call is admitted before it is carried out ([`Mcp::admit`]), and each step of a batch like a call. Whoever was admitted asks the
//! executor through [`Admitted::ask`], which looks at the page in the browser's tab first. No tool reads or changes the policy.

mod decision;
mod own;
mod page;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;
use schema::config::policy::Mode;
use schema::error::DbError;
use schema::group;
use schema::ids::{PlainName, Uid, UserName};
use schema::reader::Reader;
use serde_json::{Map, Value};
use tokio::sync::watch;
use url::Url;

use super::Mcp;
use super::tools::Caller;
use crate::executors::{Connected, ConnectionId, Devices, Key, Service};
use crate::limits::{MCP_PAGES, MCP_POLICIES};
use crate::settings::WebSettings;

pub(crate) use decision::Denied;
pub use own::Own;
pub(in crate::mcp) use page::NotAsked;
pub(crate) use rules::InEffect;
pub use rules::Policies;

/// How long rules are kept for a user: changes of groups are only looked for while something is open.
const KEPT: Duration = Duration::from_secs(5);
/// How long it is believed that a tab shows the same page.
const PAGE_KEPT: Duration = Duration::from_secs(1);

/// Browser tools of executors that work whatever page is in the tab: they leave it, or do not look into it.
const WITHOUT_PAGE: [&str; 9] = [
    "browser_navigate",
    "browser_tabs_list",
    "browser_tab_new",
    "browser_tab_close",
    "browser_tab_select",
    "browser_current_tab",
    "browser_go_back",
    "browser_go_forward",
    "browser_reload",
];

/// Rules, and the settings they were made from.
type Known = (Arc<WebSettings>, Arc<InEffect>);

/// What deciding needs.
#[derive(Debug)]
pub(super) struct Gate {
    settings: watch::Receiver<Arc<WebSettings>>,
    db: Reader,
    own: Own,
    known: Cache<Key, Known>,
    pages: Cache<ConnectionId, Url>,
}

impl Gate {
    pub(super) fn new(settings: watch::Receiver<Arc<WebSettings>>, db: Reader, own: Own) -> Self {
        Self {
            settings,
            db,
            own,
            known: MCP_POLICIES.cache().time_to_live(KEPT).build(),
            pages: MCP_PAGES.cache().time_to_live(PAGE_KEPT).build(),
        }
    }

    /// The rules for a user. The database is read only where groups have rules, and not for each call.
    async fn in_effect(&self, key: &Key, user: &UserName) -> Result<Arc<InEffect>, DbError> {
        let settings = self.settings.borrow().clone();
        if let Some((of, known)) = self.known.get(key)
            && Arc::ptr_eq(&of, &settings)
        {
            return Ok(known);
        }
        let user_uid = std::slice::from_ref(&key.user);
        let groups = self.groups(&settings.policies, user_uid).await?;
        let groups = groups.get(&key.user).map_or(&[][..], Vec::as_slice);
        let rules = settings.policies.in_effect(key.service, groups, user);
        let rules = Arc::new(rules);
        self.known
            .insert(key.clone(), (settings, Arc::clone(&rules)));
        Ok(rules)
    }

    /// The groups that users are in, or below, if groups have rules.
    async fn groups(
        &self,
        policies: &Policies,
        users: &[Uid],
    ) -> Result<HashMap<Uid, Vec<PlainName>>, DbError> {
        let mut groups: HashMap<Uid, Vec<PlainName>> = HashMap::new();
        if users.is_empty() || !policies.asks_for_groups() {
            return Ok(groups);
        }
        let mut connection = self.db.read().await?;
        for (user, group) in group::names_above(&mut connection, users).await? {
            groups.entry(user).or_default().push(group);
        }
        Ok(groups)
    }
}

/// A tool that may be carried out.
#[derive(Debug)]
pub(in crate::mcp) struct Admitted<'a> {
    mcp: &'a Mcp,
    rules: Arc<InEffect>,
    own: Own,
    tool: String,
    service: Service,
    acts: bool,
}

impl Mcp {
    /// The rules that are in effect for a user and service.
    ///
    /// # Errors
    /// When the user's groups matter and cannot be read.
    pub(crate) async fn rules(&self, key: &Key, user: &UserName) -> Result<Arc<InEffect>, DbError> {
        self.gate.in_effect(key, user).await
    }

    /// What agents may do with each of these at all, by the groups of now.
    ///
    /// # Errors
    /// When groups matter and cannot be read.
    pub(super) async fn modes(&self, executors: &[Connected]) -> Result<Vec<Mode>, DbError> {
        self.gate.known.invalidate_all();
        let settings = self.gate.settings.borrow().clone();
        let policies = &settings.policies;
        let users: HashSet<&Uid> = executors.iter().map(|it| &it.key.user).collect();
        let users: Vec<Uid> = users.into_iter().cloned().collect();
        let groups = self.gate.groups(policies, &users).await?;
        let mode = |executor: &Connected| {
            let groups = groups
                .get(&executor.key.user)
                .map_or(&[][..], Vec::as_slice);
            let user = &executor.about.user;
            policies.in_effect(executor.key.service, groups, user).mode
        };
        Ok(executors.iter().map(mode).collect())
    }

    /// Returns true if this service is known to be at a host. `found`: the value of a header `Host` by which a client has reached it.
    pub(crate) fn is_own_host(&self, host: &str, found: Option<&str>) -> bool {
        let mut own = self.gate.own.clone();
        own.add(&self.gate.settings.borrow().own);
        own.add_header(found.unwrap_or_default());
        own.has_host(host)
    }

    /// Decides whether a tool may be carried out with these arguments, which was called under the second name. To be asked for each call, and for each step of a batch.
    ///
    /// # Errors
    /// Why not, for whoever has called.
    pub(in crate::mcp) async fn admit(
        &self,
        caller: &Caller,
        [tool, named]: [&str; 2],
        read_only: bool,
        arguments: &Map<String, Value>,
    ) -> Result<Admitted<'_>, String> {
        let key = caller.key();
        let rules = self
            .rules(&key, &caller.account.name)
            .await
            .map_err(|error| {
                crate::error::ApiError::from(error).log();
                "what is allowed cannot be read at the moment; nothing was done, try again"
                    .to_owned()
            })?;
        let refused = |denied: Denied| format!("{tool} was refused: {denied}. Nothing was done");
        let mut own = self.gate.own.clone();
        if !tool.ends_with("_status") {
            rules.tool(&[tool, named], read_only).map_err(refused)?;
        }
        if caller.service == Service::Browser {
            own.add(&self.gate.settings.borrow().own);
            for executor in self.hub.of_key(&key) {
                own.add_header(executor.about.host.as_deref().unwrap_or_default());
            }
            if matches!(tool, "browser_navigate" | "browser_tab_new")
                && let Some(url) = arguments.get("url").and_then(Value::as_str)
            {
                let url = Url::parse(url).map_err(|_| refused(Denied::Scheme))?;
                rules.opens(&url, &own).map_err(refused)?;
            }
        }
        if !read_only {
            self.limits.act(&key)?;
        }
        Ok(Admitted {
            mcp: self,
            rules,
            own,
            tool: tool.to_owned(),
            service: caller.service,
            acts: !read_only,
        })
    }
}

impl Admitted<'_> {
    /// The executors that may be asked.
    pub(in crate::mcp) fn devices(&self) -> Devices {
        self.rules.devices.clone()
    }

    /// Whether it changes something.
    pub(in crate::mcp) fn acts(&self) -> bool {
        self.acts
    }

    /// Checks that a tool that only reads may be called beside it.
    pub(in crate::mcp) fn lets_read(&self, tool: &str) -> bool {
        self.rules.tool(&[tool], true).is_ok()
    }

    /// What agents may do at all.
    pub(in crate::mcp) fn mode(&self) -> Mode {
        self.rules.mode
    }
}
