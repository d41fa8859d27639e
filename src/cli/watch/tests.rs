use super::*;

#[test]
fn an_id_names_the_process_that_gave_it() {
    assert_eq!(instance("a1-b2-17"), instance("a1-b2-18"));
    assert_ne!(instance("a1-17"), instance("a2-17"));
    assert_eq!(instance("odd"), "odd");
}
