//! Random material from the operating system.

use rand::TryRng;
use rand::rngs::SysRng;
use secrecy::SecretString;
use zeroize::Zeroizing;

use super::SecretsError;

/// Letters and digits that cannot be taken for one another in print (no `0 O o 1 l I`).
const PASSWORD_ALPHABET: &[u8] = b"23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz";
const PASSWORD_LEN: usize = 16;

/// `N` random bytes, wiped when dropped.
pub(super) fn bytes<const N: usize>() -> Result<Zeroizing<[u8; N]>, SecretsError> {
    let mut bytes = Zeroizing::new([0_u8; N]);
    SysRng
        .try_fill_bytes(bytes.as_mut_slice())
        .map_err(SecretsError::Randomness)?;
    Ok(bytes)
}

/// A random password: 16 characters (93 bits) of letters and digits without look-alikes.
///
/// # Errors
/// [`SecretsError::Randomness`].
pub fn random_password() -> Result<SecretString, SecretsError> {
    // Bytes past the last full multiple of the alphabet are thrown away: each character is equally likely.
    let fair = 256 - 256 % PASSWORD_ALPHABET.len();
    let mut password = String::with_capacity(PASSWORD_LEN);
    while password.len() < PASSWORD_LEN {
        let random = bytes::<32>()?;
        let characters = random
            .iter()
            .map(|&byte| usize::from(byte))
            .filter(|&byte| byte < fair)
            .filter_map(|byte| PASSWORD_ALPHABET.get(byte % PASSWORD_ALPHABET.len()));
        for &character in characters.take(PASSWORD_LEN - password.len()) {
            password.push(char::from(character));
        }
    }
    Ok(SecretString::from(password))
}

/// A random secret for the service itself, such as the one that signs sessions: 32 bytes as 64 hex digits.
///
/// # Errors
/// [`SecretsError::Randomness`].
pub fn random_secret() -> Result<SecretString, SecretsError> {
    Ok(SecretString::from(hex::encode(bytes::<32>()?.as_slice())))
}
