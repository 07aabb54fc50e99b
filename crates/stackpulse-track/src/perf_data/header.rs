//! The beginning of a `perf.data` file: what was asked of the kernel, and on which machine
//! (`tools/perf/Documentation/perf.data-file-format.txt` in the kernel's sources).
//!
//! Attributes are read by `linux-perf-event-reader`. Sizes that a file claims are compared with the file before anything of that
//! size is allocated.

use super::bytes::{Fields, up_to_nul};
use super::{Facts, PerfDataError};
use byteorder::LittleEndian;
use linux_perf_event_reader::{
    AttrFlags, HardwareEventId, PerfEventAttr, PerfEventType, SamplingPolicy, SoftwareCounterType,
};
use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};

const MAGIC: &[u8; 8] = b"PERFILE2";
const MAGIC_SWAPPED: &[u8; 8] = b"2ELIFREP";

/// Sizes of the header of a stream, and of that of a file.
const PIPE_HEADER_BYTES: u64 = 16;
const FILE_HEADER_BYTES: usize = 104;

/// More is not read of any one section of the header.
const MAX_SECTION_BYTES: u64 = 64 << 20;

/// Numbers of features (`tools/perf/util/header.h`).
pub(super) mod feature {
    pub(in super::super) const BUILD_ID: u32 = 2;
    pub(in super::super) const OS_RELEASE: u32 = 4;
    pub(in super::super) const ARCH: u32 = 6;
    pub(in super::super) const CPUS: u32 = 7;
    pub(in super::super) const CPU_MODEL: u32 = 8;
    pub(in super::super) const EVENT_DESC: u32 = 12;
    pub(in super::super) const CLOCK_DATA: u32 = 29;
    pub(in super::super) const COUNT: u32 = 256;
}

/// One event that was opened.
#[derive(Clone, Debug)]
pub(super) struct Attribute {
    pub(super) attr: PerfEventAttr,
    pub(super) ids: Vec<u64>,
    pub(super) name: Option<String>,
}

/// What the header says.
#[derive(Debug, Default)]
pub(super) struct Header {
    pub(super) attributes: Vec<Attribute>,
    pub(super) facts: Facts,
    /// How many bytes of records follow; `None`: up to the end.
    pub(super) data_bytes: Option<u64>,
    /// Whether the file ends before the end that it states, as when perf was killed.
    pub(super) is_cut: bool,
}

impl Header {
    /// Reads a header; the input then stands at the first record.
    pub(super) fn read(input: &mut (impl Read + Seek)) -> Result<Self, PerfDataError> {
        let mut start = [0; 16];
        input.read_exact(&mut start).map_err(|_| PerfDataError::NotPerfData)?;
        let (magic, size) = start.split_at(8);
        if magic == MAGIC_SWAPPED {
            return Err(PerfDataError::BigEndian);
        }
        if magic != MAGIC {
            return Err(PerfDataError::NotPerfData);
        }
        let size = Fields::new(size).u64().unwrap_or_default();
        if size == PIPE_HEADER_BYTES {
            return Ok(Self::default());
        }
        Self::read_file(input)
    }

    fn read_file(input: &mut (impl Read + Seek)) -> Result<Self, PerfDataError> {
        let file_bytes = input.seek(SeekFrom::End(0))?;
        let bytes = section(input, file_bytes, (0, FILE_HEADER_BYTES as u64))
            .ok_or(PerfDataError::Damaged("header"))?;
        let mut fields = Fields::new(&bytes[16..]);
        let mut numbers = [0; 11];
        for number in &mut numbers {
            *number = fields.u64().ok_or(PerfDataError::Damaged("header"))?;
        }
        let [entry_bytes, attrs_at, attrs_bytes, data_at, data_bytes, _, _, features @ ..] =
            numbers;
        let mut header = Self::default();
        let attrs = section(input, file_bytes, (attrs_at, attrs_bytes))
            .ok_or(PerfDataError::Damaged("list of events"))?;
        header.read_attributes(input, file_bytes, &attrs, entry_bytes)?;
        let data_end = data_at.saturating_add(data_bytes);
        // perf writes the size last: zero means that it did not come to it.
        if data_bytes == 0 || data_end > file_bytes {
            header.is_cut = true;
        } else {
            header.data_bytes = Some(data_bytes);
            header.read_features(input, file_bytes, data_end, features);
        }
        input.seek(SeekFrom::Start(data_at))?;
        Ok(header)
    }

    /// Reads the list of attributes, each with the place of its ids behind it.
    fn read_attributes(
        &mut self,
        input: &mut (impl Read + Seek),
        file_bytes: u64,
        attrs: &[u8],
        entry_bytes: u64,
    ) -> Result<(), PerfDataError> {
        let damaged = || PerfDataError::Damaged("list of events");
        let entry_bytes = usize::try_from(entry_bytes).map_err(|_| damaged())?;
        let attr_bytes = entry_bytes.checked_sub(16).ok_or_else(damaged)?;
        for entry in attrs.chunks_exact(entry_bytes) {
            let (attr, _) =
                PerfEventAttr::parse::<_, LittleEndian>(entry).map_err(|_| damaged())?;
            let mut place = Fields::new(&entry[attr_bytes..]);
            let place = place.u64().zip(place.u64()).ok_or_else(damaged)?;
            let ids = section(input, file_bytes, place).ok_or_else(damaged)?;
            self.attributes.push(Attribute { attr, ids: numbers(&ids), name: None });
        }
        Ok(())
    }

    /// Reads what is said behind the records. Damage there costs only what it says.
    fn read_features(
        &mut self,
        input: &mut (impl Read + Seek),
        file_bytes: u64,
        places_at: u64,
        bits: [u64; 4],
    ) {
        let present = (0..feature::COUNT).filter(|&number| {
            let word = bits.get((number / 64) as usize).copied().unwrap_or_default();
            word >> (number % 64) & 1 != 0
        });
        for (nth, number) in (0u64..).zip(present) {
            let entry = section(input, file_bytes, (places_at.saturating_add(nth * 16), 16));
            let Some(entry) = entry else { return };
            let mut place = Fields::new(&entry);
            let Some(place) = place.u64().zip(place.u64()) else { return };
            if !is_wanted(number) {
                continue;
            }
            if let Some(bytes) = section(input, file_bytes, place) {
                self.feature(number, &bytes);
            }
        }
    }

    /// Takes in an attribute that a stream carries as a record.
    pub(super) fn attribute_record(&mut self, body: &[u8]) {
        if let Ok((attr, len)) = PerfEventAttr::parse::<_, LittleEndian>(body) {
            let ids = usize::try_from(len).ok().and_then(|len| body.get(len..));
            let ids = numbers(ids.unwrap_or_default());
            self.attributes.push(Attribute { attr, ids, name: None });
        }
    }

    /// Takes in a feature that a stream carries as a record.
    pub(super) fn feature_record(&mut self, body: &[u8]) {
        let mut fields = Fields::new(body);
        if let Some(number) = fields.u64().and_then(|number| u32::try_from(number).ok()) {
            self.feature(number, fields.rest());
        }
    }

    fn feature(&mut self, number: u32, bytes: &[u8]) {
        let mut fields = Fields::new(bytes);
        let facts = &mut self.facts;
        match number {
            feature::BUILD_ID => facts.build_ids.extend(build_ids(bytes)),
            feature::OS_RELEASE => facts.kernel_release = text(&mut fields),
            feature::ARCH => facts.architecture = text(&mut fields),
            feature::CPU_MODEL => facts.cpu_model = text(&mut fields),
            feature::CPUS => {
                facts.online_cpus = fields.u32().and_then(|_| fields.u32()).unwrap_or_default();
            }
            feature::CLOCK_DATA => {
                let pair = fields.u64().and_then(|_| fields.u64().zip(fields.u64()));
                facts.clock_pair = pair.map(|(wall_ns, event_ns)| (event_ns, wall_ns));
            }
            feature::EVENT_DESC => {
                self.read_names(fields);
            }
            _ => {}
        }
    }

    /// The events' names, in the order of the attributes.
    fn read_names(&mut self, mut fields: Fields<'_>) -> Option<()> {
        let count = fields.u32()?;
        let attr_bytes = usize::try_from(fields.u32()?).ok()?;
        for nth in 0..count {
            fields.take(attr_bytes)?;
            let ids = usize::try_from(fields.u32()?).ok()?;
            let name = String::from_utf8_lossy(fields.string()?).into_owned();
            fields.take(ids.checked_mul(8)?)?;
            self.attributes.get_mut(nth as usize)?.name = Some(name);
        }
        Some(())
    }

    /// Takes in a build id that a stream carries as a record.
    pub(super) fn build_id_record(&mut self, misc: u16, body: &[u8]) {
        self.facts.build_ids.extend(build_id(misc, body));
    }

    /// The name of an event: as the file tells it, else by its type.
    pub(super) fn event_name(&self, index: usize) -> String {
        let Some(attribute) = self.attributes.get(index) else { return "unknown".to_owned() };
        attribute.name.clone().unwrap_or_else(|| match attribute.attr.type_ {
            PerfEventType::Software(SoftwareCounterType::CpuClock) => "cpu-clock".to_owned(),
            PerfEventType::Software(SoftwareCounterType::TaskClock) => "task-clock".to_owned(),
            PerfEventType::Hardware(HardwareEventId::CpuCycles, _) => "cycles".to_owned(),
            _ => "unnamed".to_owned(),
        })
    }

    /// Completes the facts by those of the event whose samples are read.
    pub(super) fn tell_facts(&mut self, chosen: usize) {
        self.facts.event = self.event_name(chosen);
        let Some(Attribute { attr, .. }) = self.attributes.get(chosen) else { return };
        self.facts.rate_hz = frequency_hz(attr);
        self.facts.stack_size_bytes = attr.sample_stack_user;
        self.facts.kernel_frames = has_kernel_frames(attr);
        self.facts.follows_children = attr.flags.contains(AttrFlags::INHERIT);
    }
}

fn is_wanted(number: u32) -> bool {
    let wanted = [
        feature::BUILD_ID,
        feature::OS_RELEASE,
        feature::ARCH,
        feature::CPUS,
        feature::CPU_MODEL,
        feature::EVENT_DESC,
        feature::CLOCK_DATA,
    ];
    wanted.contains(&number)
}

/// Reads a part of the file, if the file has it.
fn section(
    input: &mut (impl Read + Seek),
    file_bytes: u64,
    (at, len): (u64, u64),
) -> Option<Vec<u8>> {
    if at.checked_add(len)? > file_bytes || len > MAX_SECTION_BYTES {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(len).ok()?];
    input.seek(SeekFrom::Start(at)).ok()?;
    input.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

fn numbers(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks().0.iter().copied().map(u64::from_le_bytes).collect()
}

fn text(fields: &mut Fields<'_>) -> String {
    String::from_utf8_lossy(fields.string().unwrap_or_default()).into_owned()
}

/// Paths and build ids, from records `{ header, pid, build id, path }`.
fn build_ids(bytes: &[u8]) -> HashMap<Vec<u8>, Vec<u8>> {
    let mut found = HashMap::new();
    let mut rest = Fields::new(bytes);
    while let Some(header) = rest.take(8) {
        let mut header = Fields::new(header);
        let (Some(_), Some(misc), Some(size)) = (header.u32(), header.u16(), header.u16()) else {
            break;
        };
        let Some(body) = usize::from(size).checked_sub(8).and_then(|len| rest.take(len)) else {
            break;
        };
        found.extend(build_id(misc, body));
    }
    found
}

/// Whether the length of a build id is told behind it.
const MISC_BUILD_ID_SIZE: u16 = 1 << 15;

/// The path and build id that a record of them tells.
pub(super) fn build_id(misc: u16, body: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut fields = Fields::new(body);
    fields.u32()?;
    let id = fields.take(24)?;
    let len = if misc & MISC_BUILD_ID_SIZE != 0 {
        usize::from(*id.get(20)?).min(20)
    } else {
        // Without a length, what is not zero counts, in words of four bytes.
        let end = id.get(..20)?.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        end.next_multiple_of(4)
    };
    Some((up_to_nul(fields.rest()).to_vec(), id.get(..len)?.to_vec()))
}

/// How often samples were asked for: per second, where that was fixed.
pub(super) fn frequency_hz(attr: &PerfEventAttr) -> u32 {
    match attr.sampling_policy {
        SamplingPolicy::Frequency(hz) => u32::try_from(hz).unwrap_or(u32::MAX),
        _ => 0,
    }
}

/// Whether the kernel's frames were asked for.
pub(super) fn has_kernel_frames(attr: &PerfEventAttr) -> bool {
    !attr.flags.intersects(AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_CALLCHAIN_KERNEL)
}
