//! The pages of an ordinary user.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use serde_json::json;
use tokio::time::timeout;

use super::Viewer;
use crate::mcp::support::{CLIENTS, node};
use crate::support::{Client, Engine, PATIENCE, Stage};

const UPLOADED: &str = "first\r\nsecond: \u{e9}, \u{4f60}\u{597d}\r\nno end of line";
const EDITED: &str = "edited: \u{e9}, \u{4f60}\u{597d}";
const FOREIGN: &str = "written by the agent meanwhile\n";
const MINE: &str = "mine, and kept";

/// A file as the service gives it back.
async fn read_file(own: &Client, path: &str) -> String {
    let answer = own.get(&format!("/api/files/download?path={path}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text()
}

impl Viewer {
    async fn wait_until_gone(&mut self, selector: &str) {
        self.browser.does("gone", selector).await;
    }

    async fn press(&mut self, selector: &str, key: &str) {
        self.browser.does("press", json!([selector, key])).await;
    }

    /// Opens the menu of a file, and clicks on an entry.
    async fn choose_for_file(&mut self, name: &str, action: &str) {
        let menu = format!("role=button[name='More actions for {name}']");
        self.click_on(&menu).await;
        let action = format!("role=menuitem[name='{action}']");
        self.click_on(&action).await;
    }

    /// Checks what is shown now against WCAG 2.2 A and AA.
    pub(super) async fn check_access(&mut self, what: &str) {
        let found = self.browser.does("axe", true).await;
        assert_eq!(found["violations"], json!([]), "{what}");
    }

    async fn upload_and_edit_a_file(&mut self, own: &Client) {
        self.open_page("/manage/files", "/manage/files").await;
        self.wait_for("text=This folder is empty").await;
        self.check_access("no files").await;
        let files = json!([
            "input[aria-label='Upload files']",
            [["notes.txt", UPLOADED]]
        ]);
        self.browser.does("choose", files).await;
        self.wait_for("role=link[name='notes.txt']").await;
        assert_eq!(read_file(own, "notes.txt").await, UPLOADED);
        self.check_access("files").await;

        self.click_on("role=link[name='notes.txt']").await;
        self.wait_for(".cm-line:has-text('no end of line')").await;
        self.check_access("editor").await;
        self.browser.fill(".cm-content", EDITED).await;
        self.press(".cm-content", "Control+s").await;
        self.wait_for("text=notes.txt saved").await;
        assert_eq!(read_file(own, "notes.txt").await, EDITED);
    }

    async fn overwrite_a_file_that_was_changed(&mut self, own: &Client) {
        let foreign = [("path", "notes.txt"), ("content", FOREIGN)];
        own.post("/api/files/edit", &foreign).await.expect(200);
        self.browser.fill(".cm-content", MINE).await;
        self.click_on("role=button[name='Save']").await;
        self.wait_for("role=dialog >> text=notes.txt was changed meanwhile")
            .await;
        assert_eq!(read_file(own, "notes.txt").await, FOREIGN);
        self.click_on("role=dialog >> role=button[name='Compare']")
            .await;
        for (side, text) in [(0, FOREIGN.trim()), (1, MINE)] {
            let editor = format!("role=dialog >> .cm-content >> nth={side}");
            self.wait_for(&format!("{editor} >> .cm-line:has-text('{text}')"))
                .await;
        }
        self.check_access("conflict").await;
        self.click_on("role=dialog >> role=button[name='Overwrite']")
            .await;
        self.wait_until_gone("role=dialog").await;
        assert_eq!(read_file(own, "notes.txt").await, MINE);
    }

    async fn rename_delete_and_download_a_file(&mut self, own: &Client) {
        self.click_on("role=link[name='Workspace']").await;
        self.choose_for_file("notes.txt", "Rename").await;
        // The field takes the focus, and what is typed replaces the name without its extension.
        let field = "input[aria-label='New name of notes.txt']:focus";
        self.wait_for(field).await;
        self.browser.does("type", "kept").await;
        self.press(field, "Enter").await;
        self.wait_for("role=link[name='kept.txt']").await;

        self.choose_for_file("kept.txt", "Delete").await;
        self.wait_until_gone("role=link[name='kept.txt']").await;
        self.click_on("role=button[name='Bring back']").await;
        self.wait_for("role=link[name='kept.txt']").await;
        self.choose_for_file("kept.txt", "Delete").await;
        self.wait_until_gone("role=link[name='kept.txt']").await;
        self.click_on("role=link[name='Trash']").await;
        let restore = "role=button[name='Bring back: kept.txt']";
        self.wait_for(restore).await;
        self.check_access("trash").await;
        self.click_on(restore).await;
        self.wait_for("text=It is back: kept.txt").await;

        self.click_on("role=link[name='Files']").await;
        let menu = "role=button[name='More actions for kept.txt']";
        self.click_on(menu).await;
        let download = "role=menuitem[name='Download']";
        let saved = self.browser.does("save", download).await;
        assert_eq!(saved, json!({"name": "kept.txt", "text": MINE}));
        assert_eq!(read_file(own, "kept.txt").await, MINE);
    }

    async fn save_a_channel(&mut self, engine: &Engine) {
        self.open_page("/manage/agent", "/manage/agent").await;
        self.wait_for("h1:has-text('Your agent is running')").await;
        self.wait_for("role=link[name='kept.txt']").await;
        self.check_access("overview").await;
        let since = engine.now();
        self.click_on("role=link[name='Set up: Chat']").await;
        self.wait_for_path("/manage/chatapp").await;
        self.wait_for("role=button[name='Save and restart']").await;
        self.check_access("chat app").await;
        self.click_on("role=link[name='All settings of this channel']")
            .await;
        self.wait_for("text=Register an app with the chat service")
            .await;
        self.click_on("label:has-text('Enabled')").await;
        self.browser
            .fill("role=textbox[name=/^Client ID/]", "4711")
            .await;
        self.click_on("role=button[name='Enter']").await;
        self.browser.fill("input[type=password]", "0815").await;
        self.check_access("channel").await;
        self.click_on("role=button[name='Save and restart']").await;
        self.wait_for("text=Chat saved; your agent has restarted with it.")
            .await;
        let happened = engine.happened("alice", &since);
        let starts = happened.iter().filter(|event| event.action == "start");
        assert_eq!(starts.count(), 1, "{happened:?}");
        self.click_on("role=link[name='My agent']").await;
        self.wait_for("h1:has-text('Your agent is running')").await;
        self.wait_for("li:has-text('Chat') >> text=Client ID 4711")
            .await;
    }

    /// Runs the program that the page shows, as it is shown, but for the service's name.
    async fn run_the_mcp_snippet(&mut self, place: &Path) {
        self.click_on("role=button[name='TypeScript SDK']").await;
        self.click_on("role=button[name='Show token']").await;
        self.wait_for("pre:has-text('Bearer alice:')").await;
        let snippet = self.browser.text("pre").await;
        let snippet = snippet.replace(super::NAME, "127.0.0.1");
        let program = place.join("snippet.mjs");
        std::fs::write(&program, snippet).unwrap();
        let libraries = Path::new(CLIENTS).join("node_modules");
        symlink(libraries, place.join("node_modules")).unwrap();
        let mut command = node(program.to_str().unwrap());
        command.stdin(Stdio::null()).kill_on_drop(true);
        let output = timeout(PATIENCE, command.output()).await.unwrap().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("name: 'browser_navigate'"), "{output:?}");
    }

    async fn look_at_the_other_pages(&mut self) {
        for (path, shown) in [
            ("/manage/log", "text=echo 1 start"),
            ("/manage/connect", "text=How to connect the desktop client"),
            ("/manage/cookies", "text=Your agent has no cookies"),
            ("/manage/skills", "text=No skills yet"),
        ] {
            self.open_page(path, path).await;
            self.wait_for(shown).await;
            self.check_access(path).await;
        }
    }

    async fn end_other_sessions_and_read_chinese(&mut self, own: &Client) {
        self.click_on("role=button[name='Account of alice']").await;
        self.wait_for("role=menuitem[name='My account']").await;
        self.check_access("menu").await;
        self.click_on("role=menuitem[name='My account']").await;
        self.wait_for("role=button[name='End all others']").await;
        self.check_access("account").await;
        self.click_on("role=button[name='End all others']").await;
        self.wait_for("text=All other sessions have ended.").await;
        own.get("/api/user/sessions").await.expect(401);
        self.wait_until_gone("role=button[name='End all others']")
            .await;
        self.click_on("role=radio[name='\u{4e2d}\u{6587}']").await;
        self.wait_for("html[lang='zh-CN'] h1:has-text('\u{6211}\u{7684}\u{8d26}\u{53f7}')")
            .await;
        self.check_access("account in Chinese").await;
        self.click_on("role=radio[name='English']").await;
        self.wait_for("html[lang=en] h1:has-text('My account')")
            .await;
    }
}

#[tokio::test]
async fn engine_user_works_with_files_channels_and_tools() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let launch = stage.serve(&engine).args(&["--adapter", "echo"]);
    let service = launch.start().await;
    let password = service.admin().await.create_user("alice").await;
    let own = service.client().signed_in("alice", &password).await;
    let mut viewer = Viewer::open(format!("http://{}", service.address())).await;
    viewer.open_page("/login", "/login").await;
    viewer.check_access("sign-in").await;
    viewer.sign_in("alice", &password).await;
    viewer.wait_for_path("/manage").await;

    viewer.upload_and_edit_a_file(&own).await;
    viewer.overwrite_a_file_that_was_changed(&own).await;
    viewer.rename_delete_and_download_a_file(&own).await;
    viewer.save_a_channel(&engine).await;
    viewer.run_the_mcp_snippet(stage.path()).await;
    viewer.look_at_the_other_pages().await;
    viewer.end_other_sessions_and_read_chinese(&own).await;
    assert_eq!(viewer.read_complaints().await, Vec::<String>::new());
}
