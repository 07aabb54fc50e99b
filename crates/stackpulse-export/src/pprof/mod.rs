//! pprof: the protocol buffers of `go tool pprof` and many services, compressed by gzip.

mod messages;

use crate::names::clean;
use crate::profile::{Call, Profile};
use crate::stacks::{Place, StackKey};
use flate2::{Compression, write::GzEncoder};
use messages::{Function, Label, Line, Location, Mapping, Sample, ValueType, field};
use prost::Message;
use prost::encoding::{int64, message, string};
use rustc_hash::FxHashMap;
use std::io::{self, Write};
use std::sync::Arc;

/// Writes the profile's distinct stacks of each thread as a gzip-compressed pprof profile.
///
/// Each sample has its number of samples, and the sum of their weights where the profile has a
/// [`Timeline`](crate::Timeline); its labels are `pid`, `tid`, `comm` and `thread`. Inlined calls are lines of one
/// location. Addresses are those that the image's file states, so mappings begin at zero.
///
/// # Errors
///
/// Those of `out`.
pub fn write_pprof(profile: &Profile, out: impl Write) -> io::Result<()> {
    let mut writer = Writer {
        out: GzEncoder::new(out, Compression::fast()),
        strings: Strings::default(),
        functions: FxHashMap::default(),
        buffer: Vec::new(),
    };
    writer.strings.index("");
    writer.header(profile)?;
    writer.mappings(profile)?;
    writer.locations(profile)?;
    writer.samples(profile)?;
    writer.strings_and_end()
}

/// A function as pprof counts it: one in two source files is two.
type FunctionKey = (u32, Option<Arc<str>>);

struct Writer<W: Write> {
    out: GzEncoder<W>,
    strings: Strings,
    functions: FxHashMap<FunctionKey, u64>,
    buffer: Vec<u8>,
}

impl<W: Write> Writer<W> {
    fn header(&mut self, profile: &Profile) -> io::Result<()> {
        let samples = self.value_type("samples", "count");
        self.message(field::SAMPLE_TYPE, &samples)?;
        let Some(timeline) = &profile.stacks.timeline else { return Ok(()) };
        let weight = if timeline.is_cpu_time() {
            self.value_type("cpu", "nanoseconds")
        } else {
            let event = if timeline.event.is_empty() { "weight" } else { &timeline.event };
            self.value_type(event, "count")
        };
        self.message(field::SAMPLE_TYPE, &weight)?;
        self.message(field::PERIOD_TYPE, &weight)?;
        if timeline.is_cpu_time() {
            self.number(field::PERIOD, signed(timeline.interval_ns()))?;
        }
        self.number(field::TIME_NANOS, signed(timeline.start_realtime_ns))?;
        self.number(field::DURATION_NANOS, signed(timeline.since_start_ns(timeline.end_ns)))?;
        self.number(field::DEFAULT_SAMPLE_TYPE, samples.kind)
    }

    /// A mapping for each image, with the number of the image plus one.
    fn mappings(&mut self, profile: &Profile) -> io::Result<()> {
        let places = profile.stacks.places_by_image();
        for ((id, image), places) in (1u64..).zip(&profile.stacks.images).zip(places) {
            let Some(&(last, _)) = places.last() else { continue };
            let calls = || places.iter().flat_map(|&(_, at)| &profile.calls[at as usize]);
            let path = String::from_utf8_lossy(&image.path);
            let name = if path.is_empty() { crate::module_name(image) } else { path.into_owned() };
            let build_id: String = image.build_id.iter().map(|b| format!("{b:02x}")).collect();
            let mapping = Mapping {
                id,
                memory_start: 0,
                memory_limit: (last | 0xfff).saturating_add(1),
                file_offset: 0,
                filename: self.strings.index(&name),
                build_id: self.strings.index(&build_id),
                // What has no name here is not to be looked up by the reader in a file that may be another.
                has_functions: true,
                has_filenames: calls().any(|call| call.file.is_some()),
                has_line_numbers: calls().any(|call| call.line.is_some()),
                has_inline_frames: true,
            };
            self.message(field::MAPPING, &mapping)?;
        }
        Ok(())
    }

    /// A location for each place, with the number of the place plus one.
    fn locations(&mut self, profile: &Profile) -> io::Result<()> {
        for ((id, place), calls) in (1u64..).zip(&profile.stacks.places).zip(&profile.calls) {
            let (mapping_id, address) = match *place {
                Place::Code { image, address } => (u64::from(image) + 1, address),
                Place::Truncated(_) | Place::Joined => (0, 0),
            };
            let mut lines = Vec::with_capacity(calls.len());
            for call in calls {
                let line = call.line.map_or(0, i64::from);
                lines.push(Line { function_id: self.function(profile, call)?, line });
            }
            self.message(field::LOCATION, &Location { id, mapping_id, address, lines })?;
        }
        Ok(())
    }

    fn function(&mut self, profile: &Profile, call: &Call) -> io::Result<u64> {
        let next = self.functions.len() as u64 + 1;
        let key = (call.function.0, call.file.clone());
        let id = *self.functions.entry(key).or_insert(next);
        if id == next {
            let name = self.strings.index(&clean(&profile.function(call.function).label()));
            let filename = self.strings.index(call.file.as_deref().unwrap_or_default());
            // Readers that find the raw name here demangle it, and shorten what is readable already.
            let function = Function { id, name, system_name: 0, filename };
            self.message(field::FUNCTION, &function)?;
        }
        Ok(id)
    }

    fn samples(&mut self, profile: &Profile) -> io::Result<()> {
        let stacks = &profile.stacks;
        let keys = ["pid", "tid", "comm", "thread"].map(|key| self.strings.index(key));
        let weights = weights(profile);
        let mut sorted: Vec<(StackKey, u64)> =
            stacks.counts.iter().map(|(&stack, &count)| (stack, count)).collect();
        sorted.sort_unstable();
        let mut sample = Sample::default();
        for (stack, count) in sorted {
            let thread = &stacks.threads[stack.actor.thread as usize];
            let process = &stacks.processes[thread.process as usize];
            sample.location_ids.clear();
            sample.location_ids.extend(stacks.places_of(stack).map(|place| u64::from(place) + 1));
            sample.values.clear();
            sample.values.push(signed(count));
            if let Some(weights) = &weights {
                sample.values.push(signed(weights.get(&stack).copied().unwrap_or_default()));
            }
            sample.labels.clear();
            let number = |key, number: u32| Label { key, text: 0, number: i64::from(number) };
            sample.labels.push(number(keys[0], process.pid));
            sample.labels.push(number(keys[1], thread.tid));
            let comm = String::from_utf8_lossy(&process.comm);
            let name = String::from_utf8_lossy(&stacks.comms[stack.actor.comm as usize]);
            for (key, text) in [(keys[2], comm), (keys[3], name)] {
                if !text.is_empty() {
                    sample.labels.push(Label {
                        key,
                        text: self.strings.index(&clean(&text)),
                        number: 0,
                    });
                }
            }
            self.message(field::SAMPLE, &sample)?;
        }
        Ok(())
    }

    fn strings_and_end(mut self) -> io::Result<()> {
        for text in std::mem::take(&mut self.strings.all) {
            self.buffer.clear();
            string::encode(field::STRING_TABLE, &text.to_string(), &mut self.buffer);
            self.out.write_all(&self.buffer)?;
        }
        self.out.finish()?.flush()
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> ValueType {
        ValueType { kind: self.strings.index(kind), unit: self.strings.index(unit) }
    }

    fn message(&mut self, field: u32, value: &impl Message) -> io::Result<()> {
        self.buffer.clear();
        message::encode(field, value, &mut self.buffer);
        self.out.write_all(&self.buffer)
    }

    fn number(&mut self, field: u32, value: i64) -> io::Result<()> {
        self.buffer.clear();
        int64::encode(field, &value, &mut self.buffer);
        self.out.write_all(&self.buffer)
    }
}

/// The sum of weights of each distinct stack.
fn weights(profile: &Profile) -> Option<FxHashMap<StackKey, u64>> {
    let timeline = profile.stacks.timeline.as_ref()?;
    let mut by_stack = vec![0u64; timeline.stacks.len()];
    for sample in &timeline.samples {
        let sum = &mut by_stack[sample.stack as usize];
        *sum = sum.saturating_add(sample.weight);
    }
    let mut weights = FxHashMap::default();
    // Two stacks may have become one by being cut.
    for (&stack, weight) in timeline.stacks.iter().zip(by_stack) {
        let sum: &mut u64 = weights.entry(stack).or_default();
        *sum = sum.saturating_add(weight);
    }
    Some(weights)
}

/// Texts, each with its index.
#[derive(Default)]
struct Strings {
    all: Vec<Arc<str>>,
    index: FxHashMap<Arc<str>, i64>,
}

impl Strings {
    fn index(&mut self, text: &str) -> i64 {
        if let Some(&at) = self.index.get(text) {
            return at;
        }
        let at = signed(self.all.len() as u64);
        let text: Arc<str> = text.into();
        self.all.push(Arc::clone(&text));
        self.index.insert(text, at);
        at
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
