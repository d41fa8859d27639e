//! The tools of browsers that the service makes of those that executors have.

mod act;
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
        && let Some(name) = selector.strip_prefix("ref=")
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
    {
        *selector = format!("[{REF}=\"{name}\"]");
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    #[rstest]
    #[case("ref=e12", r#"[data-mcp-ref="e12"]"#)]
    #[case("#a > b", "#a > b")]
    #[case("ref=e1\"],[x", "ref=e1\"],[x")]
    #[case("[ref=e1]", "[ref=e1]")]
    fn refs_become_selectors(#[case] given: &str, #[case] expected: &str) {
        let Value::Object(mut arguments) =
            json!({"selector": given, "fields": [{"selector": given, "value": given}]})
        else {
            unreachable!()
        };
        resolve_refs(&mut arguments);
        let resolved =
            json!({"selector": expected, "fields": [{"selector": expected, "value": given}]});
        assert_eq!(Value::Object(arguments), resolved);
    }
}
