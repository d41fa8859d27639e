//! The tools of desktops that the service makes of those that executors have.

mod action;
mod file;
mod pointer;
mod screenshot;
mod words;

use super::CallResult;
use super::call::Call;
use super::turn::{Stop, Turn};

pub(super) use action::stands_for;

/// Does a tool. `None`: it is none of these.
pub(super) async fn run(turn: &mut Turn<'_>, call: &Call<'_>) -> Option<Result<CallResult, Stop>> {
    let given = &call.arguments;
    Some(match call.tool.name.as_str() {
        "computer_screenshot" => screenshot::run(turn, given, call.in_usual_pictures).await,
        "computer_mouse_click"
        | "computer_mouse_move"
        | "computer_mouse_drag"
        | "computer_mouse_scroll" => pointer::run(turn, call).await,
        "computer_screen_text" => words::read(turn, given).await,
        "computer_find_text" => words::find(turn, given).await,
        "computer_click_text" => words::click(turn, given).await,
        "computer_file_read" => file::read(turn, given).await,
        _ => return None,
    })
}
