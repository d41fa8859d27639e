//! Repositories made of raw objects, so that what no honest program writes can be in them, too.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The name of an object.
pub type Id = String;

/// A bare repository.
pub struct Repository {
    pub path: PathBuf,
}

/// An entry of a tree.
pub type Entry<'a> = (&'a str, &'a [u8], &'a str);

impl Repository {
    /// An empty one in a directory.
    pub fn new(parent: &Path, name: &str) -> Self {
        let path = parent.join(name);
        std::fs::create_dir_all(&path).unwrap();
        let repository = Self { path };
        repository.git(&["init", "-q", "--bare", "--template=", "."], b"");
        // Servers that are asked for history that is not there otherwise complain.
        repository.git(&["config", "uploadpack.allowAnySHA1InWant", "true"], b"");
        repository
    }

    pub fn git(&self, arguments: &[&str], input: &[u8]) -> String {
        let mut child = Command::new("git")
            .args(arguments)
            .current_dir(&self.path)
            .env_remove("GIT_DIR")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .envs([
                ("GIT_AUTHOR_NAME", "a"),
                ("GIT_AUTHOR_EMAIL", "a@a.example"),
                ("GIT_COMMITTER_NAME", "a"),
                ("GIT_COMMITTER_EMAIL", "a@a.example"),
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("git is not installed; install it with: apt-get install -y git");
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{arguments:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub fn blob(&self, bytes: &[u8]) -> Id {
        self.git(&["hash-object", "-w", "--stdin"], bytes)
    }

    /// A tree with these entries, as they are and in this order.
    pub fn tree(&self, entries: &[Entry<'_>]) -> Id {
        let mut bytes = Vec::new();
        for (mode, name, id) in entries {
            bytes.extend_from_slice(mode.as_bytes());
            bytes.push(b' ');
            bytes.extend_from_slice(name);
            bytes.push(0);
            bytes.extend_from_slice(&hex::decode(id).unwrap());
        }
        let arguments = ["hash-object", "-t", "tree", "-w", "--stdin", "--literally"];
        self.git(&arguments, &bytes)
    }

    /// A commit of a tree, to which a reference points from now on.
    pub fn commit(&self, reference: &str, tree: &str) -> Id {
        let commit = self.git(&["commit-tree", tree, "-m", "x"], b"");
        self.git(&["update-ref", reference, &commit], b"");
        commit
    }

    /// A commit of some files in one directory each.
    pub fn files(&self, reference: &str, files: &[(&str, &[u8])]) -> Id {
        let mut entries = Vec::new();
        for (path, bytes) in files {
            let (folder, name) = path.split_once('/').unwrap();
            let blob = self.blob(bytes);
            let tree = self.tree(&[("100644", name.as_bytes(), &blob)]);
            entries.push((folder, tree));
        }
        let entries: Vec<Entry<'_>> = entries
            .iter()
            .map(|(folder, tree)| ("40000", folder.as_bytes(), tree.as_str()))
            .collect();
        let tree = self.tree(&entries);
        self.commit(reference, &tree)
    }

    /// A commit of a public collection as there are: so many skills by many authors, each of which says `text`, and beside
    /// them 14 odd ones in `odd`, of which 7 cannot be installed as they are.
    pub fn collection(&self, reference: &str, count: usize, text: &str) -> Id {
        let mut all = format!(
            "commit {reference}\ncommitter a <a@a.example> 1700000000 +0000\ndata 1\nx\ndeleteall\n"
        );
        let mut add = |mode: &str, path: &str, content: &str| {
            let length = content.len();
            all += &format!("M {mode} inline {path}\ndata {length}\n{content}\n");
        };
        let manifest = |name: &str| format!("---\nname: {name}\ndescription: {text}\n---\n");
        for number in 0..count {
            let (name, author) = (format!("skill-{number:04}"), number % 97);
            let place = format!("skills/author-{author}/{name}");
            add("100644", &format!("{place}/SKILL.md"), &manifest(&name));
            add("100644", &format!("{place}/notes/{name}.md"), &name);
        }
        let deep = vec!["d"; 33].join("/");
        for (path, name) in [
            ("outer", "outer"),
            ("outer/inner", "inner"),
            ("one", "twin"),
            ("two", "twin"),
            ("title", "Building CI/CD"),
            ("linked", "linked"),
            ("\\351", "latin"),
            ("back\\\\slash", "back"),
            ("mac", "mac"),
            ("case", "case"),
            ("broken", "["),
            ("with space", "spaced"),
            (&deep, "deep"),
        ] {
            add(
                "100644",
                &format!("\"odd/{path}/SKILL.md\""),
                &manifest(name),
            );
        }
        for (mode, path, content) in [
            ("100644", "\"odd/one/which.md\"", "one"),
            ("100644", "\"odd/two/which.md\"", "two"),
            ("120000", "odd/linked/LICENSE", "../../LICENSE"),
            ("120000", "odd/alias", "outer"),
            ("120000", "odd/by-link/SKILL.md", "../outer/SKILL.md"),
            ("100644", "\"odd/mac/Icon\\r\"", "x"),
            ("100644", "odd/case/a.md", "a"),
            ("100644", "odd/case/A.md", "A"),
        ] {
            add(mode, path, content);
        }
        all += "M 160000 959ef38fab987a1427123db7b5af595c1771e09d odd/module\n";
        self.git(&["fast-import", "--quiet", "--force"], all.as_bytes());
        self.git(&["rev-parse", reference], b"")
    }
}
