//! Pages of lists.

use serde::Serialize;
use utoipa::ToSchema;

use crate::input::Paging;

/// The part of a list to read: LIMIT and OFFSET.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) limit: i64,
    pub(super) offset: i64,
}

impl Window {
    /// The page asked for; everything when none was.
    pub(super) fn of(paging: Option<&Paging>) -> Self {
        match paging {
            None => Self {
                limit: i64::MAX,
                offset: 0,
            },
            Some(paging) => Self::at(paging, paging.page),
        }
    }

    fn at(paging: &Paging, page: u32) -> Self {
        let limit = i64::from(paging.page_size);
        Self {
            limit,
            offset: limit.saturating_mul(i64::from(page.saturating_sub(1))),
        }
    }

    /// The last page, when the one asked for lies past the end of `total` entries.
    pub(super) fn corrected(self, paging: Option<&Paging>, total: i64) -> Option<Self> {
        let paging = paging?;
        let (page, _) = paging.clamp(entries(total));
        (page != paging.page).then(|| Self::at(paging, page))
    }
}

fn entries(total: i64) -> u64 {
    u64::try_from(total).unwrap_or(0)
}

/// What every list reports of its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct Page {
    /// The page shown, from 1; one past the end is the last one.
    #[schema(example = 1)]
    page: u32,
    /// Entries per page; all of them when no page was asked for.
    #[schema(example = 20)]
    page_size: u64,
    /// Total number of entries.
    #[schema(example = 1)]
    total: u64,
    /// Total number of pages, at least 1.
    #[schema(example = 1)]
    total_pages: u64,
}

impl Page {
    /// The page asked for, of `total` entries. Without one, everything is one page.
    pub(super) fn of(paging: Option<&Paging>, total: i64) -> Self {
        let total = entries(total);
        let (page, total_pages) = paging.map_or((1, 1), |paging| paging.clamp(total));
        Self {
            page,
            page_size: paging.map_or(total, |paging| u64::from(paging.page_size)),
            total,
            total_pages,
        }
    }
}

/// The `search` of a list; empty matches all.
pub(super) fn search(paging: Option<&Paging>) -> &str {
    paging.map_or("", |paging| &paging.search)
}

/// Reads the page asked for: `$list`, which uses `$window`, gives a part of the list and how many
/// entries there are in all.
// As a function it would take an async closure, whose future the compiler does not see to be `Send`.
macro_rules! read_page {
    ($paging:expr, $window:ident => $list:expr) => {{
        let $window = $crate::routes::page::Window::of($paging);
        let (mut items, total) = $list.await?;
        if let Some($window) = $window.corrected($paging, total) {
            (items, _) = $list.await?;
        }
        (items, $crate::routes::page::Page::of($paging, total))
    }};
}
pub(super) use read_page;

/// Cuts the page out of a list that is short enough to be read as a whole. `matches` is asked with
/// the search text in lower case.
pub(super) fn cut<T>(
    mut items: Vec<T>,
    paging: Option<&Paging>,
    matches: impl Fn(&T, &str) -> bool,
) -> (Vec<T>, Page) {
    let wanted = search(paging).to_lowercase();
    items.retain(|item| wanted.is_empty() || matches(item, &wanted));
    let total = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let asked = Window::of(paging);
    let window = asked.corrected(paging, total).unwrap_or(asked);
    let count = |n: i64| usize::try_from(n).unwrap_or(usize::MAX);
    let page = items
        .into_iter()
        .skip(count(window.offset))
        .take(count(window.limit))
        .collect();
    (page, Page::of(paging, total))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paging(page: u32) -> Paging {
        Paging {
            page,
            page_size: 20,
            search: String::new(),
        }
    }

    /// What only grows, and what an agent may fill.
    const LOGS: &[&str] = &[
        "archives",
        "audit",
        "config_history",
        "events",
        "images_rollouts",
        "tasks",
    ];

    #[tokio::test]
    async fn logs_of_things_are_always_paged_and_other_lists_are_complete() {
        let yard = crate::routes::yard::yard().await;
        let root = yard.sign_in("root").await;
        let alice = yard.sign_in("alice").await;
        let mut logs = Vec::new();
        for route in crate::routes::all().into_iter().filter(|route| route.paged) {
            let query = match route.id {
                // What is inside one rollout or group, and what only a registry knows, are asked for where there is one.
                "images_rollout" | "images_registry" | "groups_members" => continue,
                "users_sessions" => "?username=alice",
                "images_users" => "?image=echo:1",
                "images_upgrade_candidates" => "?tag=1",
                _ => "",
            };
            let who = match route.path.starts_with("/api/user/") || route.id.starts_with("files") {
                true => ("alice", &alice),
                false => ("root", &root),
            };
            yard.world.in_mode_of(&route);
            let ask = yard.get(&format!("{}{query}", route.path));
            let answer = ask.with(who.0, who.1).send().await;
            assert_eq!(answer.status, 200, "{}: {answer:?}", route.id);
            let (size, total) = (&answer.body["page_size"], &answer.body["total"]);
            assert!(
                total.as_u64().is_some_and(|total| total < 20),
                "{}",
                route.id
            );
            if size != total {
                assert!(size.as_u64() >= Some(20), "{}", route.id);
                logs.push(route.id);
            }
        }
        logs.sort_unstable();
        assert_eq!(logs, LOGS);
    }

    #[test]
    fn a_window_past_the_end_moves_to_the_last_page() {
        let third = Window {
            limit: 20,
            offset: 40,
        };
        let asked = paging(9);
        let window = Window::of(Some(&asked));
        assert_eq!(window.corrected(Some(&asked), 41), Some(third));
        assert_eq!(Window::of(Some(&paging(3))), third);
        assert_eq!(third.corrected(Some(&paging(3)), 41), None);
        assert_eq!(Window::of(None).corrected(None, 41), None);
    }

    #[test]
    fn a_short_list_is_searched_and_cut() {
        let names = || (0..45).map(|n| format!("Name{n:02}")).collect::<Vec<_>>();
        let cut = |page, search: &str| {
            let paging = Paging {
                search: search.to_owned(),
                ..paging(page)
            };
            super::cut(names(), Some(&paging), |name, search| {
                name.to_lowercase().contains(search)
            })
        };
        assert_eq!(super::cut(names(), None, |_, _| false).0.len(), 45);
        assert_eq!(cut(2, "").0[0], "Name20");
        assert_eq!((cut(9, "").0.len(), cut(9, "").1.total), (5, 45));
        assert_eq!(cut(1, "NAME4").1.total, 5);
        let (none, page) = cut(1, "nobody");
        assert_eq!((none.len(), page.total), (0, 0));
    }
}
