//! Quantities of processor time and memory, as Kubernetes writes them.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

const NANOS_PER_MILLI: i64 = 1_000_000;

/// A processor limit, in thousandths of a core as the cluster wants it, rounded up.
pub(crate) fn cpu(nano_cpus: i64) -> Quantity {
    let millis = nano_cpus.div_euclid(NANOS_PER_MILLI) + i64::from(nano_cpus % NANOS_PER_MILLI > 0);
    Quantity(format!("{millis}m"))
}

/// A memory limit.
pub(crate) fn memory(bytes: i64) -> Quantity {
    Quantity(bytes.to_string())
}

/// Reads a quantity in billionths; `None`: it is none, or too large.
pub(crate) fn nanos(quantity: &Quantity) -> Option<i64> {
    let scaled = parse_quantity(&quantity.0, 1_000_000_000)?;
    i64::try_from(scaled).ok()
}

/// Reads a quantity in whole units, rounded up; `None`: it is none, or too large.
pub(crate) fn units(quantity: &Quantity) -> Option<i64> {
    let nanos = parse_quantity(&quantity.0, 1_000_000_000)?;
    let whole = nanos / 1_000_000_000 + i128::from(nanos % 1_000_000_000 > 0);
    i64::try_from(whole).ok()
}

/// Reads a quantity that is not negative, times `scale`; less than one of the result is cut off.
fn parse_quantity(text: &str, scale: i128) -> Option<i128> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let (factor, divisor): (i128, i128) = match suffix {
        "" => (1, 1),
        "n" => (1, 1_000_000_000),
        "u" => (1, 1_000_000),
        "m" => (1, 1_000),
        "k" => (1_000, 1),
        "M" => (1_000_000, 1),
        "G" => (1_000_000_000, 1),
        "T" => (1_000_000_000_000, 1),
        "P" => (1_000_000_000_000_000, 1),
        "E" => (1_000_000_000_000_000_000, 1),
        "Ki" => (1 << 10, 1),
        "Mi" => (1 << 20, 1),
        "Gi" => (1 << 30, 1),
        "Ti" => (1 << 40, 1),
        "Pi" => (1 << 50, 1),
        "Ei" => (1 << 60, 1),
        exponent => {
            let power: i32 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
            let ten = 10_i128.checked_pow(power.unsigned_abs())?;
            if power < 0 { (1, ten) } else { (ten, 1) }
        }
    };
    // More digits are less than any unit that is counted.
    let fraction = fraction.get(..fraction.len().min(18))?;
    let digits = u32::try_from(fraction.len()).ok()?;
    let ten = 10_i128.checked_pow(digits)?;
    let read = |digits: &str| match digits {
        "" => Some(0),
        digits => digits.parse::<i128>().ok(),
    };
    let number = read(whole)?
        .checked_mul(ten)?
        .checked_add(read(fraction)?)?;
    let product = number.checked_mul(factor)?.checked_mul(scale)?;
    Some(product / divisor.checked_mul(ten)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantity(text: &str) -> Quantity {
        Quantity(text.to_owned())
    }

    #[rstest::rstest]
    #[case("1", Some(1_000_000_000))]
    #[case("250m", Some(250_000_000))]
    #[case("1500000n", Some(1_500_000))]
    #[case("2.5", Some(2_500_000_000))]
    #[case(".5", Some(500_000_000))]
    #[case("1e3", Some(1_000_000_000_000))]
    #[case("1e-3", Some(1_000_000))]
    #[case("", None)]
    #[case("m", None)]
    #[case("-1", None)]
    #[case("1.2.3", None)]
    #[case("1x", None)]
    #[case("1e99", None)]
    #[case("99999999999999999999999999999999999999999", None)]
    fn processors_are_read(#[case] text: &str, #[case] expected: Option<i64>) {
        assert_eq!(nanos(&quantity(text)), expected, "{text}");
    }

    #[rstest::rstest]
    #[case("67108864", Some(64 << 20))]
    #[case("64Mi", Some(64 << 20))]
    #[case("1G", Some(1_000_000_000))]
    #[case("1.5Gi", Some(3 << 29))]
    #[case("100m", Some(1))]
    #[case("1E", Some(1_000_000_000_000_000_000))]
    #[case("16Ei", None)]
    fn memory_is_read(#[case] text: &str, #[case] expected: Option<i64>) {
        assert_eq!(units(&quantity(text)), expected, "{text}");
    }

    #[test]
    fn limits_are_written_in_the_cluster_unit() {
        assert_eq!(cpu(250_000_000), quantity("250m"));
        assert_eq!(cpu(1), quantity("1m"));
        assert_eq!(cpu(333_333_333), quantity("334m"));
        assert_eq!(memory(64 << 20), quantity("67108864"));
    }
}
