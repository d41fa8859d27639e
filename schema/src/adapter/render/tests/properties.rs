//! What holds for any documents.

use proptest::prelude::*;

use super::*;

/// Any document that names few things, so that documents meet.
fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i16>().prop_map(Value::from),
        (-1000..1000_i32).prop_map(|number| json!(f64::from(number) / 4.0)),
        prop_oneof![
            "[a-z]{0,3}",
            "[0-9]{1,4}",
            Just("1e5".to_owned()),
            Just("yes".to_owned())
        ]
        .prop_map(Value::from),
    ];
    let name = prop_oneof![
        8 => "[abc]",
        1 => Just("channels".to_owned()),
        1 => Just("channel_list".to_owned()),
        1 => Just("chat".to_owned()),
        1 => Just("settings".to_owned()),
        1 => Just("mention_only".to_owned()),
        1 => Just("models".to_owned()),
        1 => Just("mcp".to_owned()),
        1 => Just("servers".to_owned()),
        1 => Just("web".to_owned()),
        1 => Just("enabled".to_owned()),
    ];
    let value = leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            3 => prop::collection::btree_map(name.clone(), inner.clone(), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
            1 => prop::collection::vec(inner, 0..3).prop_map(Value::from),
        ]
    });
    let top = prop_oneof![
        4 => "[abc]",
        1 => Just("channels".to_owned()),
        1 => Just("channel_list".to_owned()),
        1 => Just("models".to_owned()),
        1 => Just("mcp".to_owned()),
        1 => Just("web".to_owned()),
    ];
    prop::collection::btree_map(top, value, 0..5)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

fn world() -> impl Strategy<Value = World> {
    let channel = prop::collection::btree_map(
        prop_oneof![
            Just("enabled".to_owned()),
            Just("client_id".to_owned()),
            Just("client_secret".to_owned()),
            Just("nothing".to_owned())
        ],
        prop_oneof![
            any::<bool>().prop_map(Value::from),
            "[0-9e]{1,4}".prop_map(Value::from)
        ],
        0..4,
    );
    let channels = prop::collection::btree_map(
        prop_oneof![
            Just("chat".to_owned()),
            Just("mail".to_owned()),
            Just("fax".to_owned())
        ],
        channel,
        0..3,
    );
    let cookies = prop::collection::btree_map("[a-c]\\.example", "[a-z]=[0-9]", 0..3);
    (
        1..=3_u32,
        any::<bool>(),
        (document(), document()),
        channels,
        cookies,
        prop::option::of((document(), document())),
    )
        .prop_map(|(version, yaml, global, channels, cookies, found)| {
            let world = if yaml {
                World::echo_with_yaml(version)
            } else {
                World::echo(version)
            };
            let world = World {
                channels,
                cookies,
                ..world.global(global.0, global.1)
            };
            match found {
                Some((config, security)) => world.found(config, security),
                None => world,
            }
        })
}

/// Every value outside of lists, by place.
fn leaves(value: &Value) -> BTreeMap<SettingPath, Value> {
    fn walk(value: &Value, path: SettingPath, leaves: &mut BTreeMap<SettingPath, Value>) {
        match value.as_object() {
            Some(members) if !members.is_empty() => {
                for (name, member) in members {
                    walk(member, path.join(name), leaves);
                }
            }
            _ => {
                leaves.insert(path, value.clone());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(value, SettingPath::default(), &mut found);
    found.remove(&SettingPath::default());
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn rendering_what_was_rendered_changes_nothing(world in world()) {
        let mut world = world;
        let first = world.apply();
        prop_assert!(!world.adapter.has_drifted(&first.applied, world.files()).unwrap());
        let second = world.render();
        prop_assert!(!second.config.changed);
        prop_assert!(!second.security.changed);
        prop_assert_eq!(&second.config.bytes, &first.config.bytes);
        prop_assert_eq!(&second.security.bytes, &first.security.bytes);
        prop_assert_eq!(second.applied, first.applied);
        prop_assert_eq!(second.restart_digest, first.restart_digest);
    }

    #[test]
    fn what_the_user_or_the_agent_owns_is_never_lost(world in world(), config in document(), security in document()) {
        // Without a migration, so that everything keeps its place.
        let mut world = world;
        world.tag = "1.0.0".to_owned();
        let mut world = world.found(config.clone(), security.clone());
        let rendered = world.apply();
        let managed = rendered.applied.managed;
        for (before, after, managed) in [
            (config, world.config(), managed.config),
            (security, world.secrets(), managed.security),
        ] {
            let after = leaves(&after);
            for (path, value) in leaves(&before) {
                let ours = managed.values.iter().any(|ours| ours.is_in(&path) || path.is_in(ours))
                    || managed.objects.iter().any(|ours| ours.is_in(&path));
                if !ours && value != json!({}) {
                    prop_assert_eq!(after.get(&path), Some(&value), "{}", path);
                }
            }
        }
    }

    #[test]
    fn what_is_set_no_longer_disappears_and_leaves_no_trace(world in world(), config in document(), security in document()) {
        let mut world = world;
        world.tag = "1.0.0".to_owned();
        // What nobody sets is as if it had never been set, where it hid nothing of the user's.
        let mut plain = World::echo(1).found(config.clone(), security.clone());
        plain.adapter = world.adapter.clone();
        let mut world = world.found(config, security);
        let managed = world.apply().applied.managed;
        let hidden = |document: &Value, managed: &ManagedFile| {
            managed.values.iter().any(|path| member(document, path).is_some())
                || managed.objects.iter().any(|path| member(document, path).is_some())
        };
        let hides = hidden(&plain.config(), &managed.config) || hidden(&plain.secrets(), &managed.security);
        prop_assume!(!hides);
        world.agent = json!({});
        world.security = json!({});
        world.channels.clear();
        world.cookies.clear();
        world.apply();
        plain.apply();
        prop_assert_eq!(world.config(), plain.config());
        prop_assert_eq!(world.secrets(), plain.secrets());
    }

    #[test]
    fn neither_cookies_nor_other_peoples_keys_restart(world in world(), config in document(), security in document()) {
        let digest = world.render().restart_digest;
        let mut other = world.clone().cookie("z.example", "a=1").found(config, security);
        prop_assert_eq!(&other.render().restart_digest, &digest);
        other.apply();
        prop_assert_eq!(&other.render().restart_digest, &digest);
    }

    #[test]
    fn the_order_of_names_does_not_matter(world in world()) {
        // Written by hand, so that the names come in the other order.
        fn reversed(value: &Value) -> String {
            match value {
                Value::Object(members) => {
                    let members: Vec<String> = members
                        .iter()
                        .rev()
                        .map(|(name, member)| format!("{}: {}", json!(name), reversed(member)))
                        .collect();
                    format!("{{{}}}", members.join(", "))
                }
                Value::Array(items) => {
                    format!("[{}]", items.iter().map(reversed).collect::<Vec<_>>().join(", "))
                }
                other => other.to_string(),
            }
        }
        let mut other = world.clone();
        if world.config.is_some() {
            other.config = Some(reversed(&world.config()).into_bytes());
            other.security_file = Some(reversed(&world.secrets()).into_bytes());
        }
        let (one, other) = (world.render(), other.render());
        prop_assert_eq!(one.config.bytes, other.config.bytes);
        prop_assert_eq!(one.security.bytes, other.security.bytes);
        prop_assert_eq!(one.applied, other.applied);
    }

    #[test]
    fn every_upgrade_of_anything_ends_in_a_stable_state(world in world()) {
        let mut world = world;
        world.tag = "1.0.0".to_owned();
        world.apply();
        for tag in ["1.1.0", "2.0.0"] {
            world.tag = tag.to_owned();
            world.apply();
            let again = world.render();
            prop_assert!(!again.config.changed && !again.security.changed);
        }
    }
}
