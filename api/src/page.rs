//! Pages of lists that are short enough to be read as a whole.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::input::Paging;

/// One page of a list, or all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The entries shown.
    pub items: Vec<T>,
    page: u32,
    page_size: u64,
    total: u64,
    total_pages: u64,
}

/// Cuts the page out that was asked for. `matches` tells whether an entry fits the search text,
/// which comes in lower case. Without paging everything is one page.
pub fn page_of<T>(
    mut items: Vec<T>,
    paging: Option<&Paging>,
    matches: impl Fn(&T, &str) -> bool,
) -> Page<T> {
    let count = |items: &[T]| u64::try_from(items.len()).unwrap_or(u64::MAX);
    let Some(paging) = paging else {
        let total = count(&items);
        return Page {
            items,
            page: 1,
            page_size: total,
            total,
            total_pages: 1,
        };
    };
    let search = paging.search.to_lowercase();
    items.retain(|item| matches(item, &search));
    let total = count(&items);
    let (page, total_pages) = paging.clamp(total);
    let size = usize::try_from(paging.page_size).unwrap_or(usize::MAX);
    let before = usize::try_from(page.saturating_sub(1))
        .unwrap_or(usize::MAX)
        .saturating_mul(size);
    Page {
        items: items.into_iter().skip(before).take(size).collect(),
        page,
        page_size: paging.page_size.into(),
        total,
        total_pages,
    }
}

impl<T: Serialize> Page<T> {
    /// The fields of a list answer: the entries under `name`, and where they stand in the list.
    pub fn into_fields(self, name: &str) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert(name.to_owned(), json!(self.items));
        fields.insert("page".to_owned(), json!(self.page));
        fields.insert("page_size".to_owned(), json!(self.page_size));
        fields.insert("total".to_owned(), json!(self.total));
        fields.insert("total_pages".to_owned(), json!(self.total_pages));
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(paging: Option<(u32, u32, &str)>) -> Map<String, Value> {
        let names: Vec<String> = (0..45).map(|n| format!("Name{n:02}")).collect();
        let paging = paging.map(|(page, page_size, search)| Paging {
            page,
            page_size,
            search: search.to_owned(),
        });
        let matches = |name: &String, search: &str| name.to_lowercase().contains(search);
        page_of(names, paging.as_ref(), matches).into_fields("names")
    }

    #[test]
    fn without_paging_everything_is_one_page() {
        let all = page(None);
        assert_eq!(all["names"].as_array().unwrap().len(), 45);
        assert_eq!((&all["page"], &all["total_pages"]), (&json!(1), &json!(1)));
        assert_eq!(all["total"], 45);
    }

    #[test]
    fn a_page_holds_what_matches_and_the_last_page_stands_for_all_later_ones() {
        let second = page(Some((2, 20, "")));
        assert_eq!(second["names"][0], "Name20");
        assert_eq!(second["total_pages"], 3);
        let past_the_end = page(Some((9, 20, "")));
        assert_eq!(past_the_end["page"], 3);
        assert_eq!(past_the_end["names"].as_array().unwrap().len(), 5);
        let found = page(Some((1, 20, "NAME4")));
        assert_eq!(found["total"], 5);
        let none = page(Some((1, 20, "nobody")));
        assert_eq!(none["names"], json!([]));
        assert_eq!(none["total_pages"], 1);
    }
}
