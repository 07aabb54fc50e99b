//! Durations as people type them.

use std::time::Duration;

/// Reads `10`, `10s`, `1.5s`, `250ms`, `2m` or `1h`; a bare number is seconds.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds_in_unit = match unit.trim() {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" => 60.0,
        "h" => 3600.0,
        other => return Err(format!("unknown unit `{other}`; use ms, s, m or h")),
    };
    let number: f64 = number.parse().map_err(|_| "not a number of ms, s, m or h".to_owned())?;
    Duration::try_from_secs_f64(number * seconds_in_unit).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_take_the_usual_units() {
        assert_eq!(parse("10"), Ok(Duration::from_secs(10)));
        assert_eq!(parse("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(parse("1h"), Ok(Duration::from_secs(3600)));
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in ["", "s", "-1", "1d", "1.2.3", "1e400"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
