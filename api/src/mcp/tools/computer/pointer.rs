//! Places on the screen, which models read in pictures of other sizes.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::mcp::tools::CallResult;
use crate::mcp::tools::call::Call;
use crate::mcp::tools::picture::EDGE;
use crate::mcp::tools::turn::{Arguments, Stop, Turn};

/// The size of the screen, in the pixels in which the desktop client clicks.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Screen {
    pub(super) width: u32,
    pub(super) height: u32,
}

impl Screen {
    /// Asks the desktop.
    ///
    /// # Errors
    /// When there is no answer.
    pub(super) async fn of(turn: &mut Turn<'_>) -> Result<Self, Stop> {
        let nothing = Arguments::new();
        let asked = turn.read("computer_screen_size", &nothing, |screen: Self| screen);
        let screen = asked.await?;
        match screen.width > 0 && screen.height > 0 {
            true => Ok(screen),
            false => Err(Stop::said("the desktop has no screen")),
        }
    }

    /// Checks that places are on it, which were read in a picture of it that is smaller by `scale`.
    ///
    /// # Errors
    /// Which one is not.
    fn check(self, asked: &Arguments, scale: f64) -> Result<(), Stop> {
        for field in PLACES {
            let Some(place) = asked.get(field).and_then(Value::as_f64) else {
                continue;
            };
            let length = match field.ends_with(['x', 'X']) {
                true => f64::from(self.width) / scale,
                false => f64::from(self.height) / scale,
            };
            if place < 0.0 || place >= length.ceil() {
                let (width, height) = (self.width, self.height);
                let whose = match (scale - 1.0).abs() < f64::EPSILON {
                    true => String::new(),
                    false => format!(
                        " in the picture of it that is meant, {:.0} pixels wide",
                        f64::from(width) / scale
                    ),
                };
                return Err(Stop::said(format!(
                    "{field}: {place} is not on the screen of {width}x{height} pixels{whose}: it has to be from 0 to {:.0}. Nothing was \
                     done; a place that was read in a picture of another size needs its width as imageWidth",
                    length.ceil() - 1.0
                )));
            }
        }
        Ok(())
    }

    /// The longest edge of a picture of it, of usual size.
    pub(super) fn usual_edge(self) -> u32 {
        EDGE.min(self.width.max(self.height))
    }

    /// Pixels of the screen for each of a picture of it, of usual size.
    pub(super) fn usual_scale(self) -> f64 {
        f64::from(self.width.max(self.height)) / f64::from(self.usual_edge())
    }
}

/// Which fields are places.
const PLACES: [&str; 6] = ["x", "y", "startX", "startY", "endX", "endY"];

pub(super) async fn run(turn: &mut Turn<'_>, call: &Call<'_>) -> Result<CallResult, Stop> {
    let mut asked = call.arguments.clone();
    let width = asked.remove("imageWidth").and_then(|width| width.as_u64());
    if !PLACES.iter().any(|field| asked.contains_key(*field)) {
        return turn.result(&call.tool.name, &asked).await;
    }
    let in_picture = call.in_usual_pictures || width.is_some();
    let screen = match Screen::of(turn).await {
        // A desktop that does not say how large its screen is knows by itself where it can click.
        Err(Stop::Said(_) | Stop::Quoted(_)) if !in_picture => None,
        screen => Some(screen?),
    };
    #[allow(clippy::cast_precision_loss)] // The schema has it below 16,385.
    let scale = screen.and_then(|screen| match width {
        _ if call.in_usual_pictures => Some(screen.usual_scale()),
        width => width.map(|width| f64::from(screen.width) / width.max(1) as f64),
    });
    if let Some(screen) = screen {
        screen.check(&asked, scale.unwrap_or(1.0))?;
    }
    if let Some(scale) = scale {
        scaled(&mut asked, scale);
        let number = |name: &str| asked.get(name).and_then(Value::as_i64);
        let place = [
            number("x").or(number("startX")),
            number("y").or(number("startY")),
        ];
        if let [Some(x), Some(y)] = place {
            turn.acts_at([x, y]);
        }
    }
    turn.result(&call.tool.name, &asked).await
}

fn scaled(asked: &mut Arguments, scale: f64) {
    for field in PLACES {
        if let Some(value) = asked.get_mut(field)
            && let Some(place) = value.as_f64()
        {
            #[allow(clippy::cast_possible_truncation)] // Saturating.
            let place = (place * scale).round() as i64;
            *value = json!(place);
        }
    }
}

/// A region as it is given: x, y, width and height.
///
/// # Errors
/// When it is none.
pub(super) fn region(given: &Arguments) -> Result<Option<[u32; 4]>, Stop> {
    let Some(text) = given.get("region").and_then(Value::as_str) else {
        return Ok(None);
    };
    let numbers: Option<Vec<u32>> = text.split(',').map(|it| it.trim().parse().ok()).collect();
    match numbers.as_deref() {
        Some([x, y, width, height]) if *width > 0 && *height > 0 => {
            Ok(Some([*x, *y, *width, *height]))
        }
        _ => Err(Stop::said(
            "region: x,y,width,height in pixels of the screen, such as 0,0,400,300",
        )),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::mcp::tools::turn::arguments;

    #[test]
    fn places_are_scaled_and_nothing_else() {
        let mut asked = arguments(json!({"x": 100, "y": 33, "clicks": 2, "scrollY": 5}));
        scaled(&mut asked, 1.5);
        assert_eq!(
            Value::Object(asked),
            json!({"x": 150, "y": 50, "clicks": 2, "scrollY": 5})
        );
    }

    #[test]
    fn usual_pictures_of_small_screens_have_their_size() {
        let scale = |width, height| Screen { width, height }.usual_scale();
        assert!((scale(1280, 800) - 1.0).abs() < f64::EPSILON);
        assert!((scale(3136, 1000) - 2.0).abs() < f64::EPSILON);
        assert!((scale(1000, 3136) - 2.0).abs() < f64::EPSILON);
    }

    #[rstest]
    #[case(json!({"x": 0, "y": 799, "scrollY": -5000}), 1.0, None)]
    #[case(json!({"x": 1280, "y": 0}), 1.0, Some("x: 1280 is not on the screen of 1280x800 pixels: it has to be from 0 to 1279"))]
    #[case(json!({"startX": 1, "startY": 1, "endX": 2, "endY": -1}), 1.0, Some("endY: -1 is not on the screen"))]
    #[case(json!({"x": 640, "y": 0}), 2.0, Some("x: 640 is not on the screen of 1280x800 pixels in the picture of it that is meant, 640 pixels wide"))]
    #[case(json!({"x": 639, "y": 399}), 2.0, None)]
    fn places_off_the_screen_are_named(
        #[case] asked: Value,
        #[case] scale: f64,
        #[case] expected: Option<&str>,
    ) {
        let screen = Screen {
            width: 1280,
            height: 800,
        };
        let found = screen.check(&arguments(asked), scale).err();
        let said = found.map(|stop| format!("{stop:?}"));
        match (said, expected) {
            (Some(said), Some(expected)) => assert!(said.contains(expected), "{said}"),
            (said, expected) => assert_eq!(said, expected.map(ToOwned::to_owned)),
        }
    }

    #[rstest]
    #[case("1,2,3,4", Some([1, 2, 3, 4]))]
    #[case(" 1, 2, 3, 4 ", Some([1, 2, 3, 4]))]
    #[case("1,2,3", None)]
    #[case("1,2,0,4", None)]
    #[case("-1,2,3,4", None)]
    #[case("", None)]
    fn regions_are_four_numbers(#[case] text: &str, #[case] expected: Option<[u32; 4]>) {
        let found = region(&arguments(json!({"region": text})));
        assert_eq!(found.ok().flatten(), expected);
    }
}
