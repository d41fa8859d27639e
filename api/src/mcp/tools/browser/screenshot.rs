//! `browser_screenshot`: a picture of the tab that is in front, or of one element of the page.

use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::navigate::{self, Tab};
use super::page::{self, Script};
use crate::mcp::tools::CallResult;
use crate::mcp::tools::bounded::Few;
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
    #[serde(default)]
    selector: Option<String>,
}

/// Where an element is, in pixels of the page, whose visible part is `viewport` wide.
#[derive(Deserialize)]
struct Place {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
    viewport: f64,
}

impl Place {
    /// The same in a picture of the visible part.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Never less than 0, and saturating.
    fn within(&self, width: u32) -> Region {
        let scale = f64::from(width) / self.viewport.max(1.0);
        let pixels = |length: f64| (length * scale).round().max(0.0) as u32;
        Region {
            x: pixels(self.x),
            y: pixels(self.y),
            width: pixels(self.width.min(self.width + self.x)).max(1),
            height: pixels(self.height.min(self.height + self.y)).max(1),
        }
    }
}

/// Most windows whose tabs in front are looked at.
const WINDOWS: usize = 50;

/// A picture is of the tab in front, also when another one is controlled: that one's page has to be allowed, too.
async fn may_see_front(turn: &mut Turn<'_>, controlled: Option<&Tab>) -> Result<(), Stop> {
    #[derive(Deserialize)]
    struct Answer {
        tabs: Few<Tab>,
    }
    // Each window has one; which of them is seen is not known if the window of the controlled tab is not.
    let window = controlled.and_then(|tab| tab.window_id);
    let fronts = move |open: Answer| {
        let may_be =
            |tab: &&Tab| tab.active == Some(true) && (window.is_none() || tab.window_id == window);
        (open.tabs.0.iter().filter(may_be))
            .map(|tab| Url::parse(&tab.url).ok())
            .collect::<Option<Vec<Url>>>()
    };
    let nothing = Arguments::new();
    let fronts = turn.read("browser_tabs_list", &nothing, fronts).await?;
    match fronts.filter(|fronts| (1..=WINDOWS).contains(&fronts.len())) {
        Some(fronts) => fronts
            .iter()
            .try_for_each(|page| turn.admitted().on(page))
            .map_err(Stop::Denied),
        None => Err(Stop::Denied(
            "the tab in front is not the controlled one, and its address cannot be read. Bring the controlled tab to the front with \
             browser_tab_select"
                .to_owned(),
        )),
    }
}

pub(super) async fn run(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    let given: Given = typed(given)?;
    let place: Option<Place> = match &given.selector {
        None => None,
        Some(selector) => {
            let asked = json!({ "selector": selector });
            let found = page::run(turn, Script::Place, asked, |place| place).await;
            Some(found.map_err(page::Failed::stop)?)
        }
    };
    let tab = navigate::tab(turn).await;
    let shown = tab.as_ref().is_some_and(|tab| tab.active == Some(true));
    if !shown && given.selector.is_some() {
        return Err(Stop::said(
            "selector: the controlled tab is not in front, so its elements are in no picture; browser_tab_select brings it there",
        ));
    }
    if !shown {
        may_see_front(turn, tab.as_ref()).await?;
    }
    let data = match turn.picture("browser_screenshot").await? {
        Ok(data) => data,
        Err(result) => return Ok(result),
    };
    let region = match &place {
        None => None,
        Some(place) => Some(place.within(picture::width(&data)?)),
    };
    let wanted = Wanted {
        region,
        width: given.max_width,
        format: given.format,
        quality: given.quality,
        most: turn.most_of_a_picture(),
        ..Wanted::default()
    };
    let picture = turn.fit(data, wanted).await?;
    let size = format!("A picture of {}x{} pixels.", picture.width, picture.height);
    let facts = json!({"width": picture.width, "height": picture.height});
    let result = match tab {
        None => CallResult::text(size),
        Some(tab) => {
            let warning = match tab.active {
                Some(false) => {
                    " It shows the tab that is in front, which is not the controlled one: browser_tab_select brings that to the front."
                }
                _ => "",
            };
            tab.told(&format!("{size}{warning} "))
        }
    };
    Ok(result.with(&facts).showing(picture))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_scaled_to_the_picture() {
        let place = |x, y, width, height| Place {
            x,
            y,
            width,
            height,
            viewport: 1000.0,
        };
        let region = |x, y, width, height| Region {
            x,
            y,
            width,
            height,
        };
        assert_eq!(
            place(10.0, 20.0, 30.0, 40.0).within(2000),
            region(20, 40, 60, 80)
        );
        // What lies left of the picture and above it is not in it.
        assert_eq!(
            place(-10.0, -20.0, 30.0, 40.0).within(1000),
            region(0, 0, 20, 20)
        );
        assert_eq!(place(5.0, 5.0, 0.0, 0.0).within(1000), region(5, 5, 1, 1));
    }
}
