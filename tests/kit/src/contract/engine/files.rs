//! Files inside containers.

use engine::{ContainerFiles, Containers};

use super::Stage;

pub async fn a_file_in_a_bound_directory_is_read_before_the_first_start<S>(stage: &S)
where
    S: Stage<Engine: ContainerFiles>,
{
    let engine = stage.engine();
    std::fs::create_dir_all(stage.home().join(".agent")).unwrap();
    std::fs::write(stage.home().join(".agent/probe"), "token").unwrap();
    let id = stage.create("probe", "u1").await;
    let path = "/home/agent/.agent/probe";
    for _ in ["created", "running"] {
        let content = engine.read_file(&id, path, 100).await.unwrap();
        assert_eq!(content.as_deref(), Some(b"token".as_slice()));
        let content = engine
            .read_file(&id, "/home/agent/.agent/other", 100)
            .await
            .unwrap();
        assert_eq!(content, None);
        engine.start(&id).await.unwrap();
    }
}

pub async fn what_is_no_plain_file_is_no_file<S>(stage: &S)
where
    S: Stage<Engine: ContainerFiles>,
{
    let engine = stage.engine();
    std::fs::create_dir_all(stage.home().join("directory")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", stage.home().join("link")).unwrap();
    let id = stage.create("odd", "u1").await;
    for path in ["/home/agent/directory", "/home/agent/link"] {
        assert_eq!(
            engine.read_file(&id, path, 100).await.unwrap(),
            None,
            "{path}"
        );
    }
}

pub async fn a_long_file_is_read_up_to_the_limit<S>(stage: &S)
where
    S: Stage<Engine: ContainerFiles>,
{
    let engine = stage.engine();
    std::fs::write(stage.home().join("long"), vec![b'x'; 3_000_000]).unwrap();
    let id = stage.create("long", "u1").await;
    let content = engine
        .read_file(&id, "/home/agent/long", 1000)
        .await
        .unwrap();
    assert_eq!(content, Some(vec![b'x'; 1000]));
    let content = engine
        .read_file(&id, "/home/agent/long", 4_000_000)
        .await
        .unwrap();
    assert_eq!(content.map(|content| content.len()), Some(3_000_000));
}
