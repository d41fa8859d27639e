//! Which rules are in effect for one user and service.
//!
//! There are three layers: the general one, those of the user's groups, and the user's own. A layer replaces the rules that it
//! names and leaves the others. Groups are one layer: of those that name a rule, the strictest counts.

use std::collections::HashMap;
use std::sync::Arc;

use schema::config::policy::{Layer, Mode, Policy, Rules, ToolPattern, UrlPattern};
use schema::ids::{PlainName, UserName};

use crate::executors::{Devices, Service};

/// The policy, with names as they are compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policies {
    general: Layer,
    groups: HashMap<String, Layer>,
    users: HashMap<String, Layer>,
}

impl From<Policy> for Policies {
    fn from(policy: Policy) -> Self {
        let group =
            |(name, layer): (String, Layer)| Some((name.parse::<PlainName>().ok()?.key(), layer));
        let user =
            |(name, layer): (String, Layer)| Some((name.parse::<UserName>().ok()?.key(), layer));
        Self {
            general: policy.general,
            groups: policy.groups.into_iter().filter_map(group).collect(),
            users: policy.users.into_iter().filter_map(user).collect(),
        }
    }
}

/// What is allowed: something is, when each list has it that is not empty.
pub(super) type AllOf<T> = Vec<Vec<T>>;

/// The rules in effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InEffect {
    pub(super) service: Service,
    pub(crate) mode: Mode,
    pub(super) tools: AllOf<ToolPattern>,
    pub(super) no_tools: Vec<ToolPattern>,
    pub(super) urls: AllOf<UrlPattern>,
    pub(super) no_urls: Vec<UrlPattern>,
    pub(super) builtin: bool,
    pub(super) private_addresses: bool,
    pub(crate) devices: Devices,
}

impl Policies {
    /// Whether it matters in which groups users are.
    pub(super) fn asks_for_groups(&self) -> bool {
        !self.groups.is_empty()
    }

    /// The rules for a user who is in these groups, or below them.
    pub(super) fn in_effect(
        &self,
        service: Service,
        groups: &[PlainName],
        user: &UserName,
    ) -> InEffect {
        let of = |layer: &Layer| match service {
            Service::Browser => layer.browser.clone(),
            Service::Computer => layer.computer.clone(),
        };
        let groups = groups
            .iter()
            .filter_map(|group| self.groups.get(&group.key()));
        let layers = [
            vec![of(&self.general)],
            groups.map(of).collect(),
            self.users.get(&user.key()).map(of).into_iter().collect(),
        ];
        InEffect {
            service,
            mode: newest(&layers, |rules| rules.mode)
                .into_iter()
                .min()
                .unwrap_or_default(),
            tools: newest(&layers, |rules| rules.tools.allow.clone()),
            no_tools: newest(&layers, |rules| rules.tools.deny.clone()).concat(),
            urls: newest(&layers, |rules| rules.urls.lists.allow.clone()),
            no_urls: newest(&layers, |rules| rules.urls.lists.deny.clone()).concat(),
            builtin: any_or_unset(newest(&layers, |rules| rules.urls.builtin)),
            private_addresses: newest(&layers, |rules| rules.private_addresses)
                .into_iter()
                .all(|it| it),
            devices: common(newest(&layers, |rules| rules.devices.clone())),
        }
    }
}

/// What the most specific layer says that says anything; several groups may say something each.
fn newest<T>(layers: &[Vec<Rules>], rule: impl Fn(&Rules) -> Option<T>) -> Vec<T> {
    let said = layers
        .iter()
        .rev()
        .map(|layer| layer.iter().filter_map(&rule).collect::<Vec<T>>());
    said.into_iter()
        .find(|said| !said.is_empty())
        .unwrap_or_default()
}

fn any_or_unset(said: Vec<bool>) -> bool {
    said.is_empty() || said.contains(&true)
}

/// Those in each list that is not empty.
fn common(lists: Vec<Vec<String>>) -> Devices {
    let mut lists = lists.into_iter().filter(|list| !list.is_empty());
    let mut first = lists.next()?;
    for list in lists {
        first.retain(|device| list.contains(device));
    }
    Some(Arc::from(first))
}
