//! The tools of browsers that the service makes of those that executors have.

mod act;
mod effect;
mod execute;
mod history;
mod look;
mod navigate;
mod page;
pub(super) mod plain;
mod screenshot;
mod wait;

pub(super) use wait::for_element;

use super::CallResult;
use super::turn::{Arguments, Stop, Turn};

/// The attribute by which elements are found again.
const REF: &str = "data-mcp-ref";

/// Does a tool. `None`: it is none of these.
pub(super) async fn run(
    turn: &mut Turn<'_>,
    tool: &str,
    arguments: &Arguments,
) -> Option<Result<CallResult, Stop>> {
    turn.watched = None;
    let mut asked = arguments.clone();
    let snapshot = tool != "browser_navigate"
        && asked.remove("snapshot") == Some(serde_json::Value::Bool(true));
    let result = match composed(turn, tool, &asked).await? {
        Ok(result) if !result.is_error => result,
        ended => return Some(ended),
    };
    let mut result = effect::add(turn, result).await;
    if snapshot {
        match look::snapshot(turn, &Arguments::new()).await {
            Ok(shown) => result.add(shown),
            Err(stop) => return Some(Err(stop.after(DONE))),
        }
    }
    Some(Ok(result))
}

/// Prefix of a failure to show the page after an action.
const DONE: &str = "the action was done; then: ";

async fn composed(
    turn: &mut Turn<'_>,
    tool: &str,
    arguments: &Arguments,
) -> Option<Result<CallResult, Stop>> {
    Some(match tool {
        "browser_navigate" => navigate::run(turn, arguments).await,
        "browser_screenshot" => screenshot::run(turn, arguments).await,
        "browser_click" => act::click(turn, arguments).await,
        "browser_type" => act::type_text(turn, arguments).await,
        "browser_key_press" => act::press_key(turn, arguments).await,
        "browser_execute" => execute::run(turn, arguments).await,
        "browser_go_back" => history::go(turn, tool, -1).await,
        "browser_go_forward" => history::go(turn, tool, 1).await,
        "browser_hover" => act::hover(turn, arguments).await,
        "browser_select_option" => act::select_option(turn, arguments).await,
        "browser_fill_form" => act::fill_form(turn, arguments).await,
        "browser_get_content" => look::content(turn, arguments).await,
        "browser_get_links" => look::links(turn, arguments).await,
        "browser_snapshot" => look::snapshot(turn, arguments).await,
        "browser_find" => look::find(turn, arguments).await,
        "browser_query" => look::query(turn, arguments).await,
        "browser_get_html" => look::html(turn, arguments).await,
        "browser_wait_for" => wait::run(turn, arguments).await,
        _ => return None,
    })
}

/// Refs become selectors, which executors know.
pub(super) fn resolve_refs(arguments: &mut Arguments) {
    let fields = arguments.get_mut("fields");
    let nested = fields.and_then(serde_json::Value::as_array_mut);
    for field in nested.into_iter().flatten() {
        if let Some(field) = field.as_object_mut() {
            resolve_refs(field);
        }
    }
    if let Some(serde_json::Value::String(selector)) = arguments.get_mut("selector")
        && let Some(name) = reference(selector)
    {
        *selector = format!("[{REF}=\"{name}\"]");
    }
}

/// The ref in a selector, in one of the forms in which models copy it: `ref=e3`, `[ref=e3]`, `[ref="e3"]`, `aria-ref=e3`, `@e3`, `e3`.
fn reference(selector: &str) -> Option<&str> {
    let text = selector.trim();
    let inner = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let text = inner.unwrap_or(text).trim();
    let text = text.strip_prefix("aria-").unwrap_or(text);
    let name = text.strip_prefix("ref=").or(text.strip_prefix("ref:"));
    let name = name.or((inner.is_none()).then(|| text.strip_prefix('@').unwrap_or(text)));
    let name = name?.trim().trim_matches(['"', '\'']);
    let number = name.strip_prefix('e')?;
    let is_number = (1..=9).contains(&number.len()) && number.bytes().all(|it| it.is_ascii_digit());
    is_number.then_some(name)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    #[rstest]
    #[case("#a > b", None)]
    #[case("ref=e1\"],[x", None)]
    #[case("[e3]", None)]
    #[case("em", None)]
    #[case("e", None)]
    #[case("e1234567890", None)]
    #[case("ref=e12", Some("e12"))]
    #[case("[ref=e12]", Some("e12"))]
    #[case("[ref=\"e12\"]", Some("e12"))]
    #[case("ref: e12", Some("e12"))]
    #[case("aria-ref=e12", Some("e12"))]
    #[case("@e12", Some("e12"))]
    #[case(" e12 ", Some("e12"))]
    fn copied_refs_become_selectors(#[case] given: &str, #[case] name: Option<&str>) {
        let Value::Object(mut arguments) =
            json!({"selector": given, "fields": [{"selector": given, "value": given}]})
        else {
            unreachable!()
        };
        resolve_refs(&mut arguments);
        let selector = name.map(|name| format!("[data-mcp-ref=\"{name}\"]"));
        let expected = selector.as_deref().unwrap_or(given);
        let resolved =
            json!({"selector": expected, "fields": [{"selector": expected, "value": given}]});
        assert_eq!(Value::Object(arguments), resolved);
    }
}
