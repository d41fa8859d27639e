//! Reading documents without losing anything silently.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// What a value costs besides its text, so that small ones are not for nothing.
const COST: usize = 8;

/// Reads JSON in which no object has a name twice. Usual parsers keep the last of them, so people
/// who read the file could see another.
pub(super) fn from_json(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    // JSON never becomes longer than it is; each value takes a byte at least.
    let budget = Cell::new(
        bytes
            .len()
            .saturating_mul(COST + 1)
            .saturating_add(2 * COST),
    );
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let document = Strict(&budget).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(document)
}

/// Reads any value, as long as there is budget for it. Names are texts, whatever they resemble;
/// a name twice, a tag, or a name that is no scalar is refused: it could not be written back.
pub(crate) struct Strict<'a>(pub(crate) &'a Cell<usize>);

impl Strict<'_> {
    fn spend<E: Error>(&self, cost: usize) -> Result<(), E> {
        match self.0.get().checked_sub(cost + COST) {
            Some(rest) if rest > 0 => {
                self.0.set(rest);
                Ok(())
            }
            _ => {
                self.0.set(0);
                Err(E::custom("too long"))
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON has too")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.spend(0).map(|()| Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.spend(0).map(|()| Value::from(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.spend(0).map(|()| Value::from(value))
    }

    // As JSON parsers take numbers that long.
    fn visit_i128<E: Error>(self, value: i128) -> Result<Value, E> {
        self.visit_f64(value as f64)
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<Value, E> {
        self.visit_f64(value as f64)
    }

    // Infinity and what is not a number become null, and among secrets the text they were.
    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.spend(0).map(|()| Value::from(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.spend(value.len()).map(|()| Value::from(value))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.spend(0).map(|()| Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        self.visit_unit()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.spend(0)?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Strict(self.0))? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        self.spend(0)?;
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            self.spend(name.len())?;
            let value = members.next_value_seed(Strict(self.0))?;
            if map.insert(name, value).is_some() {
                return Err(A::Error::custom("duplicate key"));
            }
        }
        Ok(Value::Object(map))
    }
}
