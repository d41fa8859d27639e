//! Rights of the service in its namespace, and parts of the cluster that it can do without.

use engine::EngineError;
use futures::future::try_join_all;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;

use super::KubernetesEngine;

/// A kind of objects, and what is done with them.
struct Needed {
    group: &'static str,
    resource: &'static str,
    subresource: &'static str,
    verbs: &'static [&'static str],
}

const fn needed_right(
    (group, resource, subresource): (&'static str, &'static str, &'static str),
    verbs: &'static [&'static str],
) -> Needed {
    Needed {
        group,
        resource,
        subresource,
        verbs,
    }
}

/// Rights without which the engine does not work.
const NEEDED: [Needed; 6] = [
    needed_right(
        ("", "pods", ""),
        &["get", "list", "watch", "create", "delete"],
    ),
    needed_right(("", "pods", "log"), &["get"]),
    needed_right(
        ("", "podtemplates", ""),
        &["get", "list", "watch", "create", "patch", "delete"],
    ),
    needed_right(("", "events", ""), &["list"]),
    needed_right(("", "persistentvolumeclaims", ""), &["get"]),
    needed_right(("metrics.k8s.io", "pods", ""), &["list"]),
];

/// Rights for programs in agents' containers, which `agents.exec=false` of the chart leaves out.
const EXEC: Needed = needed_right(("", "pods", "exec"), &["create", "get"]);

/// Rights for policies, unless an administrator makes them.
const POLICIES: Needed = needed_right(
    ("networking.k8s.io", "networkpolicies", ""),
    &["get", "create", "patch", "delete"],
);

/// The cluster measures no use.
pub(crate) const NO_METRICS: &str =
    "the cluster has no metrics API, so no use of processors and memory is shown";

/// Findings about the rights of the service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rights {
    /// Those that lack, such as `create pods`.
    pub lacking: Vec<String>,
    /// Sentences about parts that are off, and that the service can do without.
    pub absent: Vec<String>,
}

impl Rights {
    fn new(lacking: Vec<String>, lacking_exec: &[String], has_metrics: bool) -> Self {
        let exec = (!lacking_exec.is_empty()).then(|| {
            let rights = lacking_exec.join(", ");
            format!(
                "agentyard exec is off: the service may not {rights} (agents.exec of the chart)"
            )
        });
        let metrics = (!has_metrics).then(|| NO_METRICS.to_owned());
        Self {
            lacking,
            absent: exec.into_iter().chain(metrics).collect(),
        }
    }
}

impl KubernetesEngine {
    /// Asks the API server for each right that the engine uses.
    ///
    /// # Errors
    /// The API server does not answer.
    pub async fn rights(&self) -> Result<Rights, EngineError> {
        let policies = self.options.network.manage_policies.then_some(&POLICIES);
        let lacking = self.list_lacking(NEEDED.iter().chain(policies)).await?;
        let lacking_exec = self.list_lacking([&EXEC]).await?;
        let has_metrics = match self.ask_metrics().await {
            Ok(_) | Err(EngineError::Forbidden(_)) => true,
            Err(EngineError::NotFound(_)) => false,
            Err(error) => return Err(error),
        };
        Ok(Rights::new(lacking, &lacking_exec, has_metrics))
    }

    /// Names of those of these rights that the service does not have.
    async fn list_lacking(
        &self,
        rights: impl IntoIterator<Item = &Needed>,
    ) -> Result<Vec<String>, EngineError> {
        let rights = rights.into_iter();
        let asked =
            rights.flat_map(|needed| needed.verbs.iter().map(|verb| self.find_lack(needed, verb)));
        Ok(try_join_all(asked).await?.into_iter().flatten().collect())
    }

    /// The name of a right, if the service does not have it.
    async fn find_lack(&self, needed: &Needed, verb: &str) -> Result<Option<String>, EngineError> {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    namespace: text(&self.cluster.namespace),
                    group: text(needed.group),
                    resource: text(needed.resource),
                    subresource: text(needed.subresource),
                    verb: text(verb),
                    ..ResourceAttributes::default()
                }),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let reviews: Api<SelfSubjectAccessReview> = Api::all(self.cluster.client.clone());
        let params = PostParams::default();
        let answer = self.cluster.read(reviews.create(&params, &review)).await?;
        let allowed = answer.status.is_some_and(|status| status.allowed);
        let mut name = needed.resource.to_owned();
        for (mark, part) in [("/", needed.subresource), (".", needed.group)] {
            if !part.is_empty() {
                name = format!("{name}{mark}{part}");
            }
        }
        Ok((!allowed).then(|| format!("{verb} {name}")))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use k8s_openapi::api::rbac::v1::Role;

    use super::*;

    #[test]
    fn lacking_right_to_exec_is_a_note() {
        let exec = ["create pods/exec".to_owned(), "get pods/exec".to_owned()];
        let found = Rights::new(Vec::new(), &exec, true);
        let note = "agentyard exec is off: the service may not create pods/exec, get pods/exec (agents.exec of the chart)";
        assert_eq!(found.lacking, Vec::<String>::new());
        assert_eq!(found.absent, [note]);
    }

    /// The role of the tests is the chart's.
    #[test]
    fn rights_are_those_of_the_role() {
        let role: Role = serde_yaml::from_str(include_str!("../tests/cluster/role.yaml")).unwrap();
        let mut given = BTreeSet::new();
        for rule in role.rules.unwrap() {
            for resource in rule.resources.unwrap() {
                for verb in &rule.verbs {
                    let group = rule.api_groups.clone().unwrap().concat();
                    given.insert((group, resource.clone(), verb.clone()));
                }
            }
        }
        let mut asked = BTreeSet::new();
        for needed in NEEDED.iter().chain([&EXEC, &POLICIES]) {
            let resource = match needed.subresource {
                "" => needed.resource.to_owned(),
                sub => format!("{}/{sub}", needed.resource),
            };
            for verb in needed.verbs {
                let group = needed.group.to_owned();
                asked.insert((group, resource.clone(), (*verb).to_owned()));
            }
        }
        assert_eq!(asked, given);
    }
}
