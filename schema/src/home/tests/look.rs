use super::*;

#[test]
fn l77_another_directory_in_the_place_has_another_identity() {
    let world = Yard::new();
    let alice = name("alice");
    let look = || {
        world
            .homes
            .look(&alice, &uid('a'), &[".agent/config.json".to_owned()])
    };
    assert_eq!(look().unwrap(), None);
    world.homes.ensure(&alice, &uid('a'), None).unwrap();
    let first = look().unwrap().unwrap();
    assert_eq!(first.files, [false]);
    let file = world.users("alice/.agent/config.json");
    fs::write(&file, b"{}").unwrap();
    let written = look().unwrap().unwrap();
    assert_eq!((&written.id, &*written.files), (&first.id, &[true][..]));
    fs::remove_file(&file).unwrap();
    // A link is no file, wherever it leads.
    symlink("/etc/hostname", &file).unwrap();
    assert_eq!(look().unwrap().unwrap().files, [false]);
    // The inode may be used again at once: then the moment of its birth differs.
    for _ in 0..20 {
        let before = look().unwrap().unwrap().id;
        fs::remove_dir_all(world.users("alice")).unwrap();
        assert_eq!(look().unwrap(), None);
        world.homes.ensure(&alice, &uid('a'), None).unwrap();
        assert_ne!(look().unwrap().unwrap().id, before);
    }
    // What is not the account's is not looked at.
    assert!(matches!(
        world.homes.look(&alice, &uid('b'), &[]),
        Err(HomeError::Conflict(_))
    ));
}
