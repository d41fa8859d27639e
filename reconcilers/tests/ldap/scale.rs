//! A directory of many people and groups: how often it is asked for all of them.

use std::collections::BTreeSet;

use reconcilers::drivers::ldap::{Directory, DirectorySettings, Wanted};
use rstest::rstest;

use super::groups::by_groups;
use super::server::{self, Relay, Slapd};
use super::{directory, long, through};

#[rstest]
#[case::member_of(false)]
#[case::group_search(true)]
#[tokio::test]
async fn everybody_is_listed_over_one_connection_by_one_search_for_each_page(
    #[case] searched: bool,
) {
    let (people, groups) = if long() { (10_000, 200) } else { (2_000, 50) };
    let names: Vec<String> = (0..people).map(|number| format!("user{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let limits = "sizelimit size.prtotal=unlimited";
    let slapd = Slapd::with(&names, None, limits, &server::groups(groups, people));
    let relay = Relay::new(slapd.port);
    let settings = through(
        &relay,
        if searched {
            by_groups(&slapd)
        } else {
            slapd.settings()
        },
    );
    // Those that all directories have, too.
    let (all_people, all_groups) = (people + 3, groups + 1);
    let directory = directory();
    for (lists, page_size) in (1..).zip([500_u32, 100]) {
        let settings = DirectorySettings {
            page_size: page_size.try_into().unwrap(),
            ..settings.clone()
        };
        let before = relay.searches();
        let listing = directory.list(&settings).await.unwrap();
        assert_eq!(relay.accepted(), lists, "each list has one connection");
        let pages = |entries: usize| entries.div_ceil(page_size as usize);
        let expected = match searched {
            true => pages(all_people) + pages(all_groups),
            // People name their groups; what is above each of these is asked once, however many name it.
            false => pages(all_people) + all_groups,
        };
        assert_eq!(relay.searches() - before, expected, "{page_size}");
        assert_eq!(listing.people.len(), all_people);
        assert_eq!(listing.groups.unwrap().len(), all_groups);
        for person in &listing.people {
            let name = person.name.strip_prefix("user");
            let number: Option<usize> = name.map(|number| number.parse().unwrap());
            let own = number.map(|number| format!("g{}", number % groups));
            let own = own.or_else(|| (person.name == "alice").then(|| "eng".to_owned()));
            assert_eq!(person.groups, Some(BTreeSet::from_iter(own)), "{person:?}");
        }
    }
    let before = relay.searches();
    let few = Wanted {
        few: true,
        ..Wanted::default()
    };
    let check = directory.check(&settings, &few).await;
    assert!(check.steps.iter().all(|step| step.ok), "{check:?}");
    assert_eq!(check.user_count, 10, "{check:?}");
    assert_eq!(relay.searches() - before, 1 + usize::from(searched));
}
