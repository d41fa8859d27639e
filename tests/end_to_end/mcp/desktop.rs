//! Tools that the service makes of a desktop client's own: pictures of a screen, places in them, text on the screen, files.

use std::io::Cursor;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use image::{ImageFormat, RgbImage};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;

use super::support::{Person, Yard, answer, facts, question};
use crate::support::Stage;
use crate::support::wait::until;

/// The screen, in the pixels of clicks; its pictures have twice as many.
const SCREEN: (u32, u32) = (1920, 1080);

struct Scene {
    yard: Yard,
    alice: Person,
    asked: Arc<Mutex<Vec<Value>>>,
    _executor: JoinSet<()>,
}

impl Scene {
    async fn open(stage: &Stage) -> Self {
        let yard = Yard::open(stage).await;
        let alice = yard.person("alice").await;
        let mut socket = alice.executor("computer").await;
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, mut executor) = (Arc::clone(&asked), JoinSet::new());
        executor.spawn(async move {
            while let Some(Ok(message)) = socket.next().await {
                let Message::Text(text) = message else {
                    continue;
                };
                let asked: Value = serde_json::from_str(&text).unwrap();
                let Some(tool) = asked["tool"].as_str() else {
                    continue;
                };
                log.lock().unwrap().push(json!([tool, asked["params"]]));
                answer(&mut socket, &asked, desktop(tool)).await;
            }
        });
        Self {
            yard,
            alice,
            asked,
            _executor: executor,
        }
    }

    /// What comes of a tool, and what the desktop did for it.
    async fn call(&self, tool: &str, arguments: Value) -> (Value, Vec<Value>) {
        self.asked.lock().unwrap().clear();
        let result = self.alice.call("computer", tool, arguments).await;
        let done = std::mem::take(&mut *self.asked.lock().unwrap());
        (result, done)
    }
}

/// What the desktop client does with its tools.
fn desktop(tool: &str) -> Value {
    match tool {
        "computer_screen_size" => {
            json!({"width": SCREEN.0, "height": SCREEN.1, "platform": "linux"})
        }
        "computer_screenshot" => {
            let mut png = Cursor::new(Vec::new());
            let picture = RgbImage::new(SCREEN.0 * 2, SCREEN.1 * 2);
            picture.write_to(&mut png, ImageFormat::Png).unwrap();
            let data = STANDARD.encode(png.into_inner());
            json!({"content": [{"type": "image", "data": data, "mimeType": "image/png"}]})
        }
        "computer_screen_text" => json!({"count": 3, "elements": [
            {"text": "File", "confidence": 0.9, "center_x": 10, "center_y": 20},
            {"text": "Save file", "confidence": 0.4, "center_x": 30, "center_y": 40},
            {"text": "Cancel", "confidence": 0.8, "center_x": 50, "center_y": 60}]}),
        "computer_file_read" => json!({"content": "one\ntwo\nthree\n"}),
        "computer_file_list" => json!({"error": {"message": "no such directory"}}),
        _ => json!({"ok": true}),
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

/// Width and height of the picture in a result.
fn size(result: &Value) -> (u32, u32) {
    let bytes = STANDARD.decode(result["content"][1]["data"].as_str().unwrap());
    let picture = image::load_from_memory(&bytes.unwrap()).unwrap();
    (picture.width(), picture.height())
}

#[tokio::test]
async fn places_that_are_read_in_a_picture_are_clicked_on_the_screen() {
    let stage = Stage::new();
    let scene = Scene::open(&stage).await;
    let (shot, _) = scene.call("computer_screenshot", json!({})).await;
    assert_eq!(size(&shot), (1568, 882));
    let told = facts(&shot);
    assert_eq!(
        (&told["width"], &told["screenWidth"]),
        (&json!(1568), &json!(1920))
    );
    assert!(
        text(&shot).contains("give imageWidth 1568"),
        "{}",
        text(&shot)
    );
    let (part, _) = scene
        .call(
            "computer_screenshot",
            json!({"region": "960,540,480,270", "format": "png"}),
        )
        .await;
    assert_eq!(size(&part), (960, 540));
    let told = facts(&part);
    assert_eq!(
        (&told["originX"], &told["originY"], &told["scale"]),
        (&json!(960), &json!(540), &json!(2.0))
    );

    let places = json!({"x": 784, "y": 441, "imageWidth": 1568});
    let (_, done) = scene.call("computer_mouse_click", places).await;
    let click = json!(["computer_mouse_click", {"x": 960, "y": 540}]);
    assert_eq!(done, [json!(["computer_screen_size", {}]), click]);
    // Without a width, places are those of the screen.
    let (_, done) = scene
        .call("computer_mouse_move", json!({"x": 7, "y": 8}))
        .await;
    assert_eq!(done[1], json!(["computer_mouse_move", {"x": 7, "y": 8}]));
    for (tool, arguments) in [
        ("computer_mouse_click", json!({"x": 1920, "y": 8})),
        (
            "computer_mouse_click",
            json!({"x": 1568, "y": 8, "imageWidth": 1568}),
        ),
        (
            "computer_mouse_drag",
            json!({"startX": 1, "startY": 1, "endX": 1, "endY": -1}),
        ),
        (
            "computer",
            json!({"action": "left_click", "coordinate": [1600, 1]}),
        ),
    ] {
        let (off, done) = scene.call(tool, arguments).await;
        assert!(
            text(&off).contains("is not on the screen of 1920x1080"),
            "{off}"
        );
        assert_eq!(off["isError"], true);
        assert_eq!(done.last().unwrap()[0], "computer_screen_size", "{done:?}");
    }
    let (_, done) = scene
        .call(
            "computer",
            json!({"action": "left_click", "coordinate": [784, 441]}),
        )
        .await;
    let click = json!({"x": 960, "y": 540, "button": "left", "clicks": 1});
    assert_eq!(done[1], json!(["computer_mouse_click", click]));
    // The audit trail has what was done, and where on the screen.
    until("it is recorded", Duration::from_secs(10), async || {
        let path = "/api/admin/audit?object=computer/computer_mouse_click";
        let found = scene.yard.admin.get(path).await.expect(200);
        let entries = found["entries"].as_array().unwrap().iter();
        let details: Vec<_> = entries.map(|entry| entry["detail"].to_string()).collect();
        details
            .iter()
            .any(|it| it.contains("called=computer") && it.contains("at=960,540"))
    })
    .await;
    let (shot, _) = scene
        .call(
            "computer",
            json!({"action": "zoom", "region": [0, 0, 784, 441]}),
        )
        .await;
    assert_eq!(facts(&shot)["scale"], json!(1568.0 / 960.0));
    let (_, done) = scene
        .call("computer_scroll", json!({"direction": "down", "amount": 2}))
        .await;
    assert_eq!(done, [json!(["computer_mouse_scroll", {"scrollY": -2}])]);
    let (waited, done) = scene
        .call("computer", json!({"action": "wait", "duration": 0.01}))
        .await;
    assert_eq!((text(&waited), done.len()), ("waited 10 ms", 0));
    let (wrong, done) = scene
        .call("computer", json!({"action": "left_click"}))
        .await;
    assert_eq!(text(&wrong), "computer: coordinate: this action needs it");
    assert!(done.is_empty());
}

#[tokio::test]
async fn text_on_the_screen_is_found_and_clicked() {
    let stage = Stage::new();
    let scene = Scene::open(&stage).await;
    let (found, done) = scene
        .call(
            "computer_find_text",
            json!({"text": "file", "region": "0,0,100,30"}),
        )
        .await;
    assert!(text(&found).contains("\nFile at 10,20\n[end"), "{found}");
    // Desktop clients know no regions.
    assert_eq!(done, [json!(["computer_screen_text", {}])]);
    let (read, _) = scene
        .call("computer_screen_text", json!({"minConfidence": 0.5}))
        .await;
    assert_eq!(facts(&read)["count"], 2, "{read}");
    let (clicked, done) = scene
        .call(
            "computer_click_text",
            json!({"text": "file", "nth": 1, "clicks": 2}),
        )
        .await;
    assert_eq!(
        done[1],
        json!(["computer_mouse_click", {"x": 30, "y": 40, "clicks": 2}])
    );
    assert_eq!(facts(&clicked)["matched"], "Save file");
    for arguments in [json!({"text": "Open"}), json!({"text": "Cancel", "nth": 1})] {
        let (missed, done) = scene.call("computer_click_text", arguments).await;
        assert!(text(&missed).contains("nothing was clicked"), "{missed}");
        assert_eq!((&missed["isError"], done.len()), (&json!(true), 1));
    }
    let (wrong, done) = scene
        .call("computer_screen_text", json!({"region": "0,0,x"}))
        .await;
    assert!(
        text(&wrong).starts_with("region: x,y,width,height"),
        "{wrong}"
    );
    assert!(done.is_empty());
}

#[tokio::test]
async fn files_are_read_by_lines_and_batches_hold_the_desktop() {
    let stage = Stage::new();
    let scene = Scene::open(&stage).await;
    let (read, done) = scene
        .call(
            "computer_file_read",
            json!({"path": "/a", "offset": 1, "limit": 1}),
        )
        .await;
    assert!(
        text(&read).contains("Lines 1 to 1 of 3; go on with offset 2.")
            && text(&read).contains("\ntwo\n"),
        "{read}"
    );
    assert_eq!(done, [json!(["computer_file_read", {"path": "/a"}])]);
    let (failed, _) = scene
        .call("computer_file_list", json!({"path": "/b"}))
        .await;
    assert_eq!(
        (
            text(&failed).contains("no such directory"),
            &failed["isError"]
        ),
        (true, &json!(true))
    );
    let steps = json!([
        {"tool": "computer", "arguments": {"action": "screenshot"}},
        {"tool": "computer_keyboard_type", "arguments": {"text": "x"}},
        {"tool": "computer_wait", "arguments": {"ms": 1}},
        {"tool": "computer_status"},
    ]);
    let (batch, done) = scene.call("computer_batch", json!({"steps": steps})).await;
    assert_eq!(batch.get("isError"), None, "{batch}");
    assert_eq!(facts(&batch)["notMade"], 0);
    let tools: Vec<_> = done.iter().map(|it| it[0].as_str().unwrap()).collect();
    assert_eq!(
        tools,
        [
            "computer_screen_size",
            "computer_screenshot",
            "computer_keyboard_type"
        ]
    );
    let pictures = batch["content"].as_array().unwrap().iter();
    assert_eq!(pictures.filter(|it| it["type"] == "image").count(), 1);
}

#[tokio::test]
async fn what_only_looks_is_done_again_when_its_connection_is_lost_and_nothing_else_is() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    for (tool, arguments, again) in [
        ("computer_file_list", json!({"path": "/"}), true),
        ("computer_keyboard_press", json!({"keys": ["a"]}), false),
    ] {
        let mut first = alice.executor("computer").await;
        let called = alice.call("computer", tool, arguments);
        let executed = async {
            question(&mut first).await;
            drop(first);
            let mut second = alice.executor("computer").await;
            if again {
                let asked = question(&mut second).await;
                answer(&mut second, &asked, json!({"entries": []})).await;
            }
            second
        };
        let (result, _second) = tokio::join!(called, executed);
        assert_eq!(result["isError"] == true, !again, "{result}");
        if !again {
            assert!(text(&result).contains("The outcome is unknown"), "{result}");
        }
    }
}
