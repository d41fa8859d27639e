//! `computer_screenshot`: a picture of the screen, or of a region of it.

use serde::Deserialize;
use serde_json::json;

use super::pointer::{self, Screen};
use crate::mcp::tools::CallResult;
use crate::mcp::tools::picture::{self, Format, Region, Wanted};
use crate::mcp::tools::turn::{Arguments, Stop, Turn, typed};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Given {
    #[serde(default)]
    format: Option<Format>,
    #[serde(default)]
    quality: Option<u8>,
    #[serde(default)]
    max_width: Option<u32>,
}

/// A length in other pixels.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Never less than 0, and saturating.
fn scaled(length: u32, scale: f64) -> u32 {
    (f64::from(length) * scale).round() as u32
}

pub(super) async fn run(
    turn: &mut Turn<'_>,
    arguments: &Arguments,
    in_usual_pictures: bool,
) -> Result<CallResult, Stop> {
    let given: Given = typed(arguments)?;
    let region = pointer::region(arguments)?;
    let screen = Screen::of(turn).await?;
    // Pixels of the screen for each of those in which places are given.
    let unit = match in_usual_pictures {
        true => screen.usual_scale(),
        false => 1.0,
    };
    // In pixels of the screen.
    let region = region.map(|all| all.map(|length| scaled(length, unit)));
    let data = match turn.picture("computer_screenshot").await? {
        Ok(data) => data,
        Err(result) => return Ok(result),
    };
    // Screens of high density have more pixels in pictures than for clicks.
    let density = f64::from(picture::width(&data)?) / f64::from(screen.width);
    let wanted = Wanted {
        region: region.map(|all| {
            let [x, y, width, height] = all.map(|length| scaled(length, density));
            Region {
                x,
                y,
                width,
                height,
            }
        }),
        edge: match region {
            None => screen.usual_edge(),
            Some(_) => picture::EDGE,
        },
        width: given.max_width,
        format: given.format,
        quality: given.quality,
        most: turn.most_of_a_picture(),
        exact: in_usual_pictures && region.is_none(),
    };
    let picture = turn.fit(data, wanted).await?;
    let [x, y, shown] = match region {
        None => [0, 0, screen.width],
        Some([x, y, width, _]) => [x, y, width.min(screen.width.saturating_sub(x))],
    };
    let scale = f64::from(picture.width) / f64::from(shown.max(1));
    let place = match region {
        None if in_usual_pictures => "Coordinates are those of this picture.".to_owned(),
        None => format!(
            "To act at a place in it, give imageWidth {}.",
            picture.width
        ),
        Some(_) => {
            let (x, y) = (f64::from(x) / unit, f64::from(y) / unit);
            let of = match in_usual_pictures {
                true => "in pictures of the whole screen",
                false => "on the screen",
            };
            let scale = scale * unit;
            format!(
                "It shows the screen from {x:.0},{y:.0} on: the place a,b in it is {x:.0} + a / {scale:.4}, {y:.0} + b / {scale:.4} {of}."
            )
        }
    };
    let said = format!(
        "A picture of {}x{} pixels of a screen of {}x{}. {place}",
        picture.width, picture.height, screen.width, screen.height
    );
    let facts = json!({
        "width": picture.width,
        "height": picture.height,
        "screenWidth": screen.width,
        "screenHeight": screen.height,
        "scale": scale,
        "originX": x,
        "originY": y,
    });
    Ok(CallResult::text(said).with(&facts).showing(picture))
}
