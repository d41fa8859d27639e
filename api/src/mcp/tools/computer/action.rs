//! Tools that are other words for others: `computer`, in the form that some models were trained on, and `computer_scroll`.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::mcp::tools::turn::{Arguments, arguments};

/// How far one step scrolls when nothing is said.
const NOTCHES: i64 = 3;

/// What a call is carried out as.
#[derive(Debug, PartialEq)]
pub(in crate::mcp::tools) struct StandsFor {
    pub(in crate::mcp::tools) tool: &'static str,
    pub(in crate::mcp::tools) arguments: Arguments,
    /// Its places are those of a screenshot of usual size.
    pub(in crate::mcp::tools) in_usual_pictures: bool,
}

#[derive(Deserialize)]
struct Action {
    action: String,
    #[serde(default)]
    coordinate: Option<[i64; 2]>,
    #[serde(default)]
    start_coordinate: Option<[i64; 2]>,
    #[serde(default)]
    region: Option<[i64; 4]>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    scroll_direction: Option<String>,
    #[serde(default)]
    scroll_amount: Option<i64>,
    #[serde(default)]
    duration: Option<f64>,
}

#[derive(Deserialize)]
struct Scroll {
    direction: String,
    #[serde(default)]
    amount: Option<i64>,
    #[serde(flatten)]
    rest: Arguments,
}

/// What a call is carried out as; `None`: as itself.
///
/// # Errors
/// The field and the rule.
pub(in crate::mcp::tools) fn stands_for(
    tool: &str,
    given: &Arguments,
) -> Result<Option<StandsFor>, String> {
    let whole = Value::Object(given.clone());
    let unreadable = |error: serde_json::Error| format!("{tool}: {error}");
    match tool {
        "computer" => {
            let action: Action = serde_json::from_value(whole).map_err(unreadable)?;
            let (tool, given) = action
                .stands_for()
                .map_err(|said| format!("computer: {said}"))?;
            Ok(Some(StandsFor {
                tool,
                arguments: arguments(given),
                in_usual_pictures: true,
            }))
        }
        "computer_scroll" => {
            let scroll: Scroll = serde_json::from_value(whole).map_err(unreadable)?;
            let mut turned = wheel(&scroll.direction, scroll.amount);
            turned.extend(scroll.rest);
            Ok(Some(StandsFor {
                tool: "computer_mouse_scroll",
                arguments: turned,
                in_usual_pictures: false,
            }))
        }
        _ => Ok(None),
    }
}

/// Desktop clients scroll up and to the right for positive numbers.
fn wheel(direction: &str, amount: Option<i64>) -> Arguments {
    let amount = amount.unwrap_or(NOTCHES);
    arguments(match direction {
        "up" => json!({"scrollY": amount}),
        "left" => json!({"scrollY": 0, "scrollX": -amount}),
        "right" => json!({"scrollY": 0, "scrollX": amount}),
        _ => json!({"scrollY": -amount}),
    })
}

fn given<T: Copy>(value: Option<T>, field: &str) -> Result<T, String> {
    value.ok_or_else(|| format!("{field}: this action needs it"))
}

impl Action {
    fn stands_for(&self) -> Result<(&'static str, Value), String> {
        let place = || given(self.coordinate, "coordinate");
        let text = || given(self.text.as_deref(), "text");
        let click = |button: &str, clicks: u8| {
            if self.text.is_some() {
                return Err("text: keys cannot be held during a click".to_owned());
            }
            let [x, y] = place()?;
            let asked = json!({"x": x, "y": y, "button": button, "clicks": clicks});
            Ok(("computer_mouse_click", asked))
        };
        match self.action.as_str() {
            "screenshot" => Ok(("computer_screenshot", json!({}))),
            "zoom" => {
                let [x, y, to_x, to_y] = given(self.region, "region")?;
                if x < 0 || y < 0 || to_x <= x || to_y <= y {
                    return Err(
                        "region: two corners, x0, y0, x1, y1, the upper left one first".to_owned(),
                    );
                }
                let region = format!("{x},{y},{},{}", to_x - x, to_y - y);
                Ok(("computer_screenshot", json!({"region": region})))
            }
            "left_click" => click("left", 1),
            "right_click" => click("right", 1),
            "middle_click" => click("middle", 1),
            "double_click" => click("left", 2),
            "triple_click" => click("left", 3),
            "mouse_move" => {
                let [x, y] = place()?;
                Ok(("computer_mouse_move", json!({"x": x, "y": y})))
            }
            "left_click_drag" => {
                let [start_x, start_y] = given(self.start_coordinate, "start_coordinate")?;
                let [x, y] = place()?;
                let asked = json!({"startX": start_x, "startY": start_y, "endX": x, "endY": y});
                Ok(("computer_mouse_drag", asked))
            }
            "scroll" => {
                let direction = given(self.scroll_direction.as_deref(), "scroll_direction")?;
                let mut asked = wheel(direction, self.scroll_amount);
                if let Some([x, y]) = self.coordinate {
                    asked.extend(arguments(json!({"x": x, "y": y})));
                }
                Ok(("computer_mouse_scroll", Value::Object(asked)))
            }
            "key" => Ok(("computer_keyboard_press", json!({"keys": keys(text()?)}))),
            "type" => Ok(("computer_keyboard_type", json!({"text": text()?}))),
            "wait" => {
                let seconds = given(self.duration, "duration")?;
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                // The schema has it between 0 and 30.
                let time = (seconds * 1000.0).round() as u64;
                Ok(("computer_wait", json!({"ms": time})))
            }
            other => Err(format!("action: {other} cannot be done")),
        }
    }
}

/// Keys that are pressed together, in the words of the desktop client; models use those of X11.
fn keys(text: &str) -> Vec<String> {
    let key = |name: &str| {
        let name = name.trim().to_ascii_lowercase();
        match name.as_str() {
            "return" | "kp_enter" => "enter".to_owned(),
            "escape" => "esc".to_owned(),
            "page_up" | "prior" => "pageup".to_owned(),
            "page_down" | "next" => "pagedown".to_owned(),
            "super" | "super_l" | "super_r" | "meta" | "cmd" => "win".to_owned(),
            "control" | "control_l" | "control_r" => "ctrl".to_owned(),
            "alt_l" | "option" => "alt".to_owned(),
            "shift_l" | "shift_r" => "shift".to_owned(),
            _ => name,
        }
    };
    // The plus itself stands at the end.
    let (held, plus) = match text.trim().strip_suffix('+') {
        Some(held) => (held, Some("+".to_owned())),
        None => (text, None),
    };
    let held = held.split('+').filter(|it| !it.trim().is_empty()).map(key);
    held.chain(plus).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!({"action": "screenshot"}), "computer_screenshot", json!({}))]
    #[case(json!({"action": "double_click", "coordinate": [3, 4]}), "computer_mouse_click", json!({"x": 3, "y": 4, "button": "left", "clicks": 2}))]
    #[case(json!({"action": "right_click", "coordinate": [3, 4]}), "computer_mouse_click", json!({"x": 3, "y": 4, "button": "right", "clicks": 1}))]
    #[case(json!({"action": "left_click_drag", "start_coordinate": [1, 2], "coordinate": [3, 4]}), "computer_mouse_drag", json!({"startX": 1, "startY": 2, "endX": 3, "endY": 4}))]
    #[case(json!({"action": "scroll", "scroll_direction": "down", "scroll_amount": 5, "coordinate": [3, 4]}), "computer_mouse_scroll", json!({"scrollY": -5, "x": 3, "y": 4}))]
    #[case(json!({"action": "key", "text": "ctrl+Return"}), "computer_keyboard_press", json!({"keys": ["ctrl", "enter"]}))]
    #[case(json!({"action": "key", "text": "+"}), "computer_keyboard_press", json!({"keys": ["+"]}))]
    #[case(json!({"action": "key", "text": "ctrl++"}), "computer_keyboard_press", json!({"keys": ["ctrl", "+"]}))]
    #[case(json!({"action": "type", "text": "a+b"}), "computer_keyboard_type", json!({"text": "a+b"}))]
    #[case(json!({"action": "wait", "duration": 1.5}), "computer_wait", json!({"ms": 1500}))]
    #[case(json!({"action": "zoom", "region": [10, 20, 110, 70]}), "computer_screenshot", json!({"region": "10,20,100,50"}))]
    fn actions_stand_for_tools(#[case] given: Value, #[case] tool: &str, #[case] expected: Value) {
        let found = stands_for("computer", &arguments(given)).unwrap().unwrap();
        assert_eq!(found.tool, tool);
        assert_eq!(Value::Object(found.arguments), expected);
        assert!(found.in_usual_pictures);
    }

    #[rstest]
    #[case(json!({"action": "left_click"}), "computer: coordinate: this action needs it")]
    #[case(json!({"action": "left_click", "coordinate": [1, 2], "text": "shift"}), "computer: text: keys cannot be held during a click")]
    #[case(json!({"action": "left_click_drag", "coordinate": [1, 2]}), "computer: start_coordinate: this action needs it")]
    #[case(json!({"action": "zoom", "region": [5, 5, 5, 9]}), "computer: region: two corners, x0, y0, x1, y1, the upper left one first")]
    #[case(json!({"action": "type"}), "computer: text: this action needs it")]
    fn what_an_action_lacks_is_said(#[case] given: Value, #[case] expected: &str) {
        assert_eq!(
            stands_for("computer", &arguments(given)).unwrap_err(),
            expected
        );
    }

    #[rstest]
    #[case("up", json!({"scrollY": 2, "x": 1}))]
    #[case("down", json!({"scrollY": -2, "x": 1}))]
    #[case("left", json!({"scrollY": 0, "scrollX": -2, "x": 1}))]
    #[case("right", json!({"scrollY": 0, "scrollX": 2, "x": 1}))]
    fn directions_have_the_signs_of_the_desktop_client(
        #[case] direction: &str,
        #[case] expected: Value,
    ) {
        let given = arguments(json!({"direction": direction, "amount": 2, "x": 1}));
        let found = stands_for("computer_scroll", &given).unwrap().unwrap();
        assert_eq!(Value::Object(found.arguments), expected);
    }
}
