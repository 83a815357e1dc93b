//! Durations as Go writes them, in whole seconds: `5s`, `1m30s`, and a plain number of seconds.

/// The seconds; none when it is no duration or less than a second.
pub fn seconds(written: &str) -> Option<i64> {
    let mut total = 0_i64;
    let mut rest = written.trim_ascii();
    if rest.bytes().all(|byte| byte.is_ascii_digit()) {
        return rest.parse().ok().filter(|seconds| *seconds > 0);
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = rest.split_at(digits);
        let number: i64 = number.parse().ok()?;
        let letters = unit.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, behind) = unit.split_at(letters);
        let milliseconds = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return None,
        };
        rest = behind;
        total = total.checked_add(number.checked_mul(milliseconds)?)?;
    }
    Some(total / 1_000).filter(|seconds| *seconds > 0)
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, expected) in [("5s", 5), ("1m30s", 90), ("1h", 3600), ("2500ms", 2), ("7", 7)] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for wrong in [
            "",
            "s",
            "5x",
            "0s",
            "-1s",
            "10ms",
            "99999999999999999999s",
            "9223372036854775807h",
        ] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }
}
