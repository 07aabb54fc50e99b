//! Numbers with their units.

/// `1.5 KiB`, `3.2 MiB`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if count < 1024 {
        return format!("{count} bytes");
    }
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let mut value = count as f64 / 1024.0;
    let mut unit = UNITS[0];
    for larger in &UNITS[1..] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    format!("{value:.1} {unit}")
}

/// `850 ms`, `12.3 s`, `2 min 05 s`.
pub(crate) fn duration(nanoseconds: u64) -> String {
    let milliseconds = nanoseconds / 1_000_000;
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{}.{} s", milliseconds / 1000, milliseconds % 1000 / 100),
        _ => format!("{} min {:02} s", milliseconds / 60_000, milliseconds / 1000 % 60),
    }
}

/// The share of `part` in `whole`, in percent; zero of nothing.
#[expect(clippy::cast_precision_loss, reason = "a few digits are shown")]
pub(crate) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// `1 sample`, `2 samples`.
pub(crate) fn plural(count: u64, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_durations_read_like_speech() {
        assert_eq!(bytes(0), "0 bytes");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(3 << 20), "3.0 MiB");
        assert_eq!(duration(850_000_000), "850 ms");
        assert_eq!(duration(12_340_000_000), "12.3 s");
        assert_eq!(duration(125_000_000_000), "2 min 05 s");
    }

    #[test]
    fn a_share_of_nothing_is_nothing() {
        assert!(percent(0, 0).abs() < f64::EPSILON);
        assert!((percent(1, 4) - 25.0).abs() < f64::EPSILON);
    }
}
