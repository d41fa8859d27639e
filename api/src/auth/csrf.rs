//! CSRF tokens: the first 32 hex digits of an HMAC over `username:<hour>`.
//!
//! Nothing is stored: the token of an account is constant within an hour, and that of the previous
//! hour is accepted, too. It comes from the form field `csrf_token` or the header `X-CSRF-Token`,
//! never from the query, which ends up in logs and histories.

use schema::ids::{Timestamp, UserName};
use subtle::ConstantTimeEq;

use super::Signer;

/// The form field.
pub const FIELD: &str = "csrf_token";
/// The header.
pub const HEADER: &str = "x-csrf-token";

/// Seconds during which a token stays the same.
const WINDOW: i64 = 3600;

fn token_of_window(signer: &Signer, user: &UserName, window: i64) -> String {
    signer.sign_csrf(&format!("{user}:{window}"))
}

/// The present token of an account.
pub fn token(signer: &Signer, user: &UserName, now: Timestamp) -> String {
    token_of_window(signer, user, now.as_secs().div_euclid(WINDOW))
}

/// Whether `given` is the present or the previous token; compares in constant time.
pub fn is_valid(signer: &Signer, user: &UserName, now: Timestamp, given: &str) -> bool {
    let window = now.as_secs().div_euclid(WINDOW);
    let present = token_of_window(signer, user, window);
    let previous = token_of_window(signer, user, window - 1);
    let given = given.as_bytes();
    (present.as_bytes().ct_eq(given) | previous.as_bytes().ct_eq(given)).into()
}

#[cfg(test)]
mod tests {
    use super::super::signer::test_signer;
    use super::*;

    fn at(window: i64, second: i64) -> Timestamp {
        Timestamp::from_secs(window * WINDOW + second)
    }

    #[test]
    fn the_token_is_the_published_vector() {
        let user = "testuser".parse().unwrap();
        let token = token(&test_signer(), &user, at(494_027, 1800));
        assert_eq!(token, "74d1c432d4df3b55679eeb5d537764fd");
    }

    #[test]
    fn l20_the_token_of_this_and_the_previous_hour_is_accepted() {
        let (signer, user) = (test_signer(), "testuser".parse().unwrap());
        let token = token(&signer, &user, at(494_027, 0));
        for (now, valid) in [
            (at(494_026, 3599), false),
            (at(494_027, 0), true),
            (at(494_028, 3599), true),
            (at(494_029, 0), false),
        ] {
            assert_eq!(is_valid(&signer, &user, now, &token), valid);
        }
    }

    #[test]
    fn tokens_of_others_and_parts_of_tokens_are_refused() {
        let (signer, user) = (test_signer(), "testuser".parse().unwrap());
        let now = at(494_027, 0);
        let other = token(&signer, &"other".parse().unwrap(), now);
        let own = token(&signer, &user, now);
        for bad in ["", &own[..31], &format!("{own}0"), &other] {
            assert!(!is_valid(&signer, &user, now, bad), "{bad}");
        }
    }
}
