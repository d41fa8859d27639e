//! Values of the options that are checked where they stand, so that a refusal names field and line.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A text with a rule, which returns what it must be.
struct Text(fn(&str) -> Option<&'static str>);

impl Visitor<'_> for Text {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        match self.0(text) {
            None => Ok(text.to_owned()),
            Some(rule) => Err(E::custom(format!("{text:?} is not usable: {rule}"))),
        }
    }
}

/// A network in CIDR form.
struct Network(String);

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let rule = |text: &str| {
            let wrong = text.parse::<cidr::IpCidr>().is_err();
            wrong.then_some("give a network such as 10.0.0.0/8")
        };
        deserializer.deserialize_str(Text(rule)).map(Self)
    }
}

/// Reads networks.
pub(crate) fn networks<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let networks = Vec::<Network>::deserialize(from)?;
    Ok(networks.into_iter().map(|network| network.0).collect())
}

/// Reads the URL of a service.
pub(crate) fn service_url<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    from.deserialize_str(Text(|text| {
        let url = text.parse::<http::Uri>().ok();
        let known = url.is_some_and(|url| {
            matches!(url.scheme_str(), Some("http" | "https")) && url.host().is_some()
        });
        (!known).then_some("give a URL such as http://agentyard-agents:8081")
    }))
}

/// Reads the name of an object in the cluster.
pub(crate) fn object_name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    from.deserialize_str(Text(|text| {
        let good = text.len() <= 253 && text.split('.').all(super::names::is_object_name);
        (!good).then_some("give the name of an object: lower-case letters, digits, '-' and '.'")
    }))
}

/// Reads a folder below another one.
pub(crate) fn folder<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    from.deserialize_str(Text(|text| {
        let mut steps = text.split('/');
        let bad = !text.is_empty() && steps.any(|step| matches!(step, "" | "." | ".."));
        bad.then_some("give a folder of the claim without a slash at its begin or end")
    }))
}

/// Reads a text that says something.
pub(crate) fn filled<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    from.deserialize_str(Text(|text| {
        text.trim()
            .is_empty()
            .then_some("it is empty; give a value")
    }))
}

/// Reads a percentage.
pub(crate) fn percent<'de, D: Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    struct Percent;
    impl Visitor<'_> for Percent {
        type Value = u8;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a whole number from 1 to 100")
        }

        fn visit_u64<E: Error>(self, value: u64) -> Result<u8, E> {
            let value = u8::try_from(value).ok().filter(|it| (1..=100).contains(it));
            value.ok_or_else(|| E::custom("give a whole number from 1 to 100"))
        }
    }
    from.deserialize_u8(Percent)
}
