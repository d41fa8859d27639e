//! Networks and addresses.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::{AgentNetwork, ContainerState, Containers, EngineError, LABEL_OWNER, NetworkSettings};

use super::Stage;

fn tiny<S: Stage>(stage: &S) -> NetworkSettings {
    NetworkSettings {
        name: stage.name("tiny"),
        subnet: stage.tiny_subnet(),
        labels: BTreeMap::from([(LABEL_OWNER.to_owned(), stage.owner().to_owned())]),
        isolation: Default::default(),
    }
}

pub async fn a_network_is_made_once_and_read_back<S>(stage: &S)
where
    S: Stage<Engine: AgentNetwork>,
{
    let engine = stage.engine();
    let settings = tiny(stage);
    assert_eq!(engine.network(&settings.name).await.unwrap(), None);
    engine.create_network(&settings).await.unwrap();
    let network = engine.network(&settings.name).await.unwrap().unwrap();
    assert_eq!(network.name, settings.name);
    assert_eq!(network.driver, "bridge");
    assert_eq!(network.subnet.as_deref(), Some(settings.subnet.as_str()));
    let first = settings.subnet.replace(".0/30", ".1");
    assert_eq!(network.gateway, Some(first));
    assert!(!network.inter_container_traffic);
    assert_eq!(network.labels, settings.labels);
    assert_eq!(network.containers, Vec::<String>::new());

    let mut again = settings.clone();
    again.subnet = again.subnet.replace(".0/30", ".8/30");
    let outcome = engine.create_network(&again).await;
    assert!(
        matches!(outcome, Err(EngineError::NameTaken(_))),
        "{outcome:?}"
    );
    assert_eq!(
        engine.network(&settings.name).await.unwrap(),
        Some(network.clone())
    );

    // By a part of its id it is not found: that is another name.
    assert_eq!(engine.network(&network.id[..12]).await.unwrap(), None);
    for _ in 0..2 {
        engine.remove_network(&network.id).await.unwrap();
    }
    assert_eq!(engine.network(&settings.name).await.unwrap(), None);
}

pub async fn a_network_in_use_is_not_removed<S>(stage: &S)
where
    S: Stage<Engine: AgentNetwork>,
{
    let engine = stage.engine();
    let id = stage.run("user", "u1").await;
    let network = engine.network(stage.network()).await.unwrap().unwrap();
    assert_eq!(network.containers, [id]);
    let outcome = engine.remove_network(&network.id).await;
    assert!(
        matches!(outcome, Err(EngineError::Conflict(_))),
        "{outcome:?}"
    );
}

pub async fn a_bad_or_overlapping_subnet_is_refused<S>(stage: &S)
where
    S: Stage<Engine: AgentNetwork>,
{
    let engine = stage.engine();
    let taken = engine.network(stage.network()).await.unwrap().unwrap();
    for subnet in [
        "banana",
        "10.0.0.1/8",
        "10.0.0.0/33",
        "10.0.0.0/31",
        taken.subnet.as_deref().unwrap(),
    ] {
        let mut settings = tiny(stage);
        settings.subnet = subnet.to_owned();
        let outcome = engine.create_network(&settings).await;
        assert!(
            matches!(outcome, Err(EngineError::Refused(_))),
            "{subnet}: {outcome:?}"
        );
        assert_eq!(engine.network(&settings.name).await.unwrap(), None);
    }
}

pub async fn l29_an_address_is_given_at_start_and_free_again_after_the_end<S>(stage: &S)
where
    S: Stage<Engine: AgentNetwork>,
{
    let engine = stage.engine();
    let network = tiny(stage);
    engine.create_network(&network).await.unwrap();
    let mut settings = stage.settings("u1");
    settings.network.clone_from(&network.name);
    let one = engine.create(&stage.name("one"), &settings).await.unwrap();
    let two = engine.create(&stage.name("two"), &settings).await.unwrap();
    assert_eq!(
        stage.see(&one).await.container.networks[&network.name],
        None
    );

    // Of the four addresses only one is for containers.
    let expected = Some(network.subnet.replace(".0/30", ".2"));
    engine.start(&one).await.unwrap();
    assert_eq!(
        stage.see(&one).await.container.networks[&network.name],
        expected
    );
    let outcome = engine.start(&two).await;
    assert!(
        matches!(outcome, Err(EngineError::NetworkFull)),
        "{outcome:?}"
    );
    assert_eq!(
        stage.see(&two).await.container.state,
        ContainerState::Created
    );

    engine.stop(&one, Duration::ZERO).await.unwrap();
    assert_eq!(
        stage.see(&one).await.container.networks[&network.name],
        None
    );
    engine.start(&two).await.unwrap();
    assert_eq!(
        stage.see(&two).await.container.networks[&network.name],
        expected
    );
    engine.remove(&one).await.unwrap();
    engine.remove(&two).await.unwrap();
    engine.remove_network(&network.name).await.unwrap();
}

pub async fn a_container_without_its_network_does_not_start<S>(stage: &S)
where
    S: Stage<Engine: AgentNetwork>,
{
    let engine = stage.engine();
    let mut settings = stage.settings("u1");
    settings.network = stage.name("missing");
    let id = engine.create(&stage.name("lost"), &settings).await.unwrap();
    let outcome = engine.start(&id).await;
    assert!(
        matches!(outcome, Err(EngineError::NotFound(_))),
        "{outcome:?}"
    );
    assert_eq!(
        stage.see(&id).await.container.state,
        ContainerState::Created
    );
}
