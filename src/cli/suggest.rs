//! What somebody may have meant.

use schema::config::KEYS;

/// Similar enough to be a slip of the finger, from 0 to 1.
const SIMILAR: f64 = 0.8;
/// Guesses shown.
const GUESSES: usize = 3;

/// The names most like `given`, best first.
pub fn closest<S: AsRef<str>>(given: &str, names: impl IntoIterator<Item = S>) -> Vec<String> {
    let given = given.to_lowercase();
    let mut guesses: Vec<(f64, String)> = names
        .into_iter()
        .map(|name| {
            let name = name.as_ref();
            let lower = name.to_lowercase();
            let mut likeness = strsim::jaro_winkler(&given, &lower);
            // One slip in a short name makes it look very different.
            if given.len() > 2 && strsim::osa_distance(&given, &lower) == 1 {
                likeness = likeness.max(SIMILAR);
            }
            (likeness, name.to_owned())
        })
        .filter(|(likeness, _)| *likeness >= SIMILAR)
        .collect();
    guesses.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    guesses.truncate(GUESSES);
    guesses.into_iter().map(|(_, name)| name).collect()
}

/// The keys of the configuration most like `given`, best first; else those that end like it.
pub fn closest_keys(given: &str) -> Vec<String> {
    let guesses = closest(given, KEYS.keys().copied());
    if !guesses.is_empty() {
        return guesses;
    }
    let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_lowercase();
    let end = last(given);
    let is_like = |key: &&&str| end.len() > 2 && last(key).contains(&end);
    let keys = KEYS.keys().filter(is_like).take(GUESSES);
    keys.map(|key| (*key).to_owned()).collect()
}

/// ` (did you mean "a" or "b"?)`, or nothing.
pub fn did_you_mean(guesses: &[String]) -> String {
    if guesses.is_empty() {
        return String::new();
    }
    let quoted: Vec<String> = guesses.iter().map(|guess| format!("{guess:?}")).collect();
    format!(" (did you mean {}?)", quoted.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_found_by_its_end() {
        for given in ["container.subnet", "network.subnet", "subnet"] {
            let guesses = closest_keys(given);
            assert_eq!(guesses[0], "container.network_subnet", "{guesses:?}");
        }
        assert_eq!(closest_keys("no.such"), Vec::<String>::new());
    }

    #[test]
    fn slips_are_recognised_and_the_rest_is_not() {
        let names = ["alice", "alicia", "bob", "zoe"];
        assert_eq!(closest("Alic", names), ["alice", "alicia"]);
        assert_eq!(closest("lacie", names), ["alice"]);
        assert_eq!(closest("bbo", names), ["bob"]);
        assert_eq!(closest("bo", ["zo"]), Vec::<String>::new());
        assert_eq!(closest("quentin", names), Vec::<String>::new());
        assert_eq!(did_you_mean(&[]), "");
        let guesses = closest("bob2", names);
        assert_eq!(did_you_mean(&guesses), " (did you mean \"bob\"?)");
    }
}
