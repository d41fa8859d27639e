use super::bounds::ROWS;
use super::*;

#[test]
fn account_has_at_most_half_of_what_all_share() {
    for (name, row) in ROWS {
        if let (Each::Account(each), All::Most(all)) = (row.each, row.all) {
            let is_socket = name.starts_with("SOCKET_");
            assert!(is_socket || 2 * each <= all, "{name}: {each} of {all}");
        }
    }
}
