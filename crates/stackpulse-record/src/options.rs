//! What to record, and how often.

use crate::error::{Error, ErrorKind};
use stackpulse_perf::capture::{CaptureOptions, EventChoice, MAX_STACK_SIZE_BYTES};
use std::io;
use std::num::NonZeroU32;
use std::time::Duration;

/// The largest stack copy the kernel accepts, in bytes.
pub const MAX_STACK_SIZE: u32 = MAX_STACK_SIZE_BYTES;

/// Where the kernel says how many samples a second it takes.
const RATE_LIMIT_PATH: &str = "/proc/sys/kernel/perf_event_max_sample_rate";

/// How often each CPU is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleRate(Rate);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rate {
    Hz(NonZeroU32),
    Maximum,
}

impl SampleRate {
    /// As often as the kernel's limit allows when the recording starts.
    #[expect(non_upper_case_globals, reason = "reads as the variant it stands for")]
    pub const Maximum: Self = Self(Rate::Maximum);

    /// That many samples a second of CPU time.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] for zero.
    pub fn hz(rate: u32) -> Result<Self, Error> {
        match NonZeroU32::new(rate) {
            Some(rate) => Ok(Self(Rate::Hz(rate))),
            None => {
                Err(Error::new(ErrorKind::InvalidInput, "a sample rate of 0 Hz takes no samples"))
            }
        }
    }

    /// Returns samples per second, checked against the kernel's limit.
    pub(crate) fn resolve(self) -> Result<u32, Error> {
        let limit = std::fs::read_to_string(RATE_LIMIT_PATH);
        match self.0 {
            Rate::Hz(rate) => match limit.ok().and_then(|text| parse_limit(&text)) {
                Some(limit) if rate.get() > limit => Err(Error::new(
                    ErrorKind::FrequencyLimit,
                    format!(
                        "a sample rate of {rate} Hz is above the kernel's limit of {limit} Hz; \
                         lower the rate, or raise kernel.perf_event_max_sample_rate"
                    ),
                )),
                // No limit to be read: the kernel itself refuses what is too much.
                _ => Ok(rate.get()),
            },
            Rate::Maximum => {
                let text = limit.map_err(|error| {
                    Error::caused(ErrorKind::Io, format_args!("read {RATE_LIMIT_PATH}"), error)
                })?;
                parse_limit(&text).ok_or_else(|| {
                    let invalid = io::Error::new(
                        io::ErrorKind::InvalidData,
                        format!("{:?} is no number of 1 to {}", text.trim(), u32::MAX),
                    );
                    Error::caused(ErrorKind::Io, format_args!("read {RATE_LIMIT_PATH}"), invalid)
                })
            }
        }
    }
}

/// The kernel's limit, if the text is a number of 1..=u32::MAX.
fn parse_limit(text: &str) -> Option<u32> {
    text.trim().parse().ok().filter(|&limit| limit > 0)
}

/// What to record and how; [`Default`] gives the values in parentheses.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecorderOptions {
    /// How often each CPU is sampled (1,000 Hz).
    pub sample_rate: SampleRate,
    /// Which event is sampled (hardware cycles, else `cpu-clock`).
    pub event: EventChoice,
    /// Bytes of user stack copied with each sample (32 KiB): rounded up to eight, at most
    /// [`MAX_STACK_SIZE`]; zero records the sampled instruction and kernel frames alone.
    pub stack_size: u32,
    /// How many samples with full stacks a CPU's ring holds at least (32; zero means the same).
    pub ring_buffer_stacks: u32,
    /// Whether kernel frames are recorded (no); where that is not permitted the recording goes
    /// on without them and [`Recorder::settings`](crate::Recorder::settings) says so.
    pub include_kernel: bool,
    /// Whether children of the process are recorded too (no): those created later, and those there are.
    pub inherit_children: bool,
    /// The CPUs to sample (all of them). What processes do is followed on all.
    pub cpus: Option<Vec<u32>>,
    /// Wall-clock time of the first moment, microseconds since 1970 UTC (taken from the clock).
    pub start_timestamp_us: Option<u64>,
    /// Microseconds between samples that the spool's header tells (taken from the rate); what is sampled does not change.
    pub sample_interval_us: Option<NonZeroU32>,
    /// Whether the capture thread asks to run ahead of others when rings fill (yes): as a real-time thread of the lowest
    /// priority where that is permitted. It only copies samples; unwinding is done at ordinary priority.
    pub prompt_capture: bool,
    /// Whether sampling begins at once (yes); else with [`Recorder::enable`](crate::Recorder::enable).
    pub start_enabled: bool,
    /// How often whole blocks become visible to readers (500 ms).
    pub publish_interval: Duration,
}

impl Default for RecorderOptions {
    fn default() -> Self {
        Self {
            sample_rate: SampleRate(Rate::Hz(NonZeroU32::new(1000).expect("not zero"))),
            event: EventChoice::Automatic,
            stack_size: 32 * 1024,
            ring_buffer_stacks: 32,
            include_kernel: false,
            inherit_children: false,
            cpus: None,
            start_timestamp_us: None,
            sample_interval_us: None,
            prompt_capture: true,
            start_enabled: true,
            publish_interval: Duration::from_millis(500),
        }
    }
}

impl RecorderOptions {
    /// Returns what the capture is to do, checked.
    pub(crate) fn capture_options(&self) -> Result<CaptureOptions, Error> {
        Ok(CaptureOptions {
            frequency_hz: self.sample_rate.resolve()?,
            event: self.event,
            stack_size_bytes: self.checked_stack_size()?,
            ring_buffer_stacks: match self.ring_buffer_stacks {
                0 => CaptureOptions::default().ring_buffer_stacks,
                stacks => stacks,
            },
            include_kernel: self.include_kernel,
            inherit_children: self.inherit_children,
            cpus: self.cpus.clone(),
            start_enabled: self.start_enabled,
        })
    }

    /// Returns the stack size as the kernel wants it.
    pub(crate) fn checked_stack_size(&self) -> Result<u32, Error> {
        let rounded = self.stack_size.checked_next_multiple_of(8).unwrap_or(u32::MAX);
        if rounded > MAX_STACK_SIZE {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "a stack size of {} bytes is above the {MAX_STACK_SIZE} that the kernel can copy",
                    self.stack_size
                ),
            ));
        }
        Ok(rounded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_must_be_a_positive_32_bit_number() {
        assert_eq!(parse_limit("100000\n"), Some(100_000));
        assert_eq!(parse_limit("0"), None);
        assert_eq!(parse_limit("4294967296"), None);
        assert_eq!(parse_limit("many"), None);
    }

    #[test]
    fn stack_sizes_are_rounded_up_to_eight_and_bounded() {
        let sized = |stack_size| RecorderOptions { stack_size, ..RecorderOptions::default() };
        assert_eq!(sized(0).checked_stack_size().unwrap(), 0);
        assert_eq!(sized(4097).checked_stack_size().unwrap(), 4104);
        assert_eq!(sized(65_521).checked_stack_size().unwrap(), MAX_STACK_SIZE);
        assert_eq!(sized(65_529).checked_stack_size().unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(
            sized(u32::MAX).checked_stack_size().unwrap_err().kind(),
            ErrorKind::InvalidInput
        );
    }

    #[test]
    fn a_rate_of_zero_is_invalid() {
        assert_eq!(SampleRate::hz(0).unwrap_err().kind(), ErrorKind::InvalidInput);
    }

    #[test]
    fn a_rate_above_the_limit_names_both_numbers() {
        let error = SampleRate::hz(u32::MAX).unwrap().resolve().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FrequencyLimit);
        assert!(error.to_string().contains("4294967295"), "{error}");
    }
}
