//! Nodes that Pods are bound to, or prefer. Pure.

use k8s_openapi::api::core::v1::{
    Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod,
    PreferredSchedulingTerm,
};

/// Weight of the last node beside other preferences of the scheduler: half of the highest.
const WEIGHT: i32 = 50;

/// Binds a Pod to a node.
pub(crate) fn node_affinity(node: &str) -> Affinity {
    Affinity {
        node_affinity: Some(NodeAffinity {
            required_during_scheduling_ignored_during_execution: Some(NodeSelector {
                node_selector_terms: vec![node_term(node)],
            }),
            ..NodeAffinity::default()
        }),
        ..Affinity::default()
    }
}

/// Lets a Pod prefer a node, which has its image.
pub(crate) fn prefer_node(pod: &mut Pod, node: &str) {
    let spec = pod.spec.get_or_insert_default();
    let affinity = spec.affinity.get_or_insert_default();
    let nodes = affinity.node_affinity.get_or_insert_default();
    let preferred = &mut nodes.preferred_during_scheduling_ignored_during_execution;
    preferred
        .get_or_insert_default()
        .push(PreferredSchedulingTerm {
            weight: WEIGHT,
            preference: node_term(node),
        });
}

fn node_term(node: &str) -> NodeSelectorTerm {
    NodeSelectorTerm {
        match_fields: Some(vec![NodeSelectorRequirement {
            key: "metadata.name".to_owned(),
            operator: "In".to_owned(),
            values: Some(vec![node.to_owned()]),
        }]),
        ..NodeSelectorTerm::default()
    }
}
