//! The messages of pprof's `profile.proto`, as far as they are written here.

use prost::Message;

/// What a value counts.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ValueType {
    #[prost(int64, tag = "1")]
    pub(super) kind: i64,
    #[prost(int64, tag = "2")]
    pub(super) unit: i64,
}

/// A distinct stack with its labels.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    pub(super) location_ids: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub(super) values: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub(super) labels: Vec<Label>,
}

/// A remark on a sample: a text or a number.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Label {
    #[prost(int64, tag = "1")]
    pub(super) key: i64,
    #[prost(int64, tag = "2")]
    pub(super) text: i64,
    #[prost(int64, tag = "3")]
    pub(super) number: i64,
}

/// An image.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Mapping {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(uint64, tag = "2")]
    pub(super) memory_start: u64,
    #[prost(uint64, tag = "3")]
    pub(super) memory_limit: u64,
    #[prost(uint64, tag = "4")]
    pub(super) file_offset: u64,
    #[prost(int64, tag = "5")]
    pub(super) filename: i64,
    #[prost(int64, tag = "6")]
    pub(super) build_id: i64,
    #[prost(bool, tag = "7")]
    pub(super) has_functions: bool,
    #[prost(bool, tag = "8")]
    pub(super) has_filenames: bool,
    #[prost(bool, tag = "9")]
    pub(super) has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    pub(super) has_inline_frames: bool,
}

/// A place.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Location {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(uint64, tag = "2")]
    pub(super) mapping_id: u64,
    #[prost(uint64, tag = "3")]
    pub(super) address: u64,
    /// Innermost first.
    #[prost(message, repeated, tag = "4")]
    pub(super) lines: Vec<Line>,
}

/// A call at a place.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Line {
    #[prost(uint64, tag = "1")]
    pub(super) function_id: u64,
    #[prost(int64, tag = "2")]
    pub(super) line: i64,
}

/// A function in a source file.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Function {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(int64, tag = "2")]
    pub(super) name: i64,
    #[prost(int64, tag = "3")]
    pub(super) system_name: i64,
    #[prost(int64, tag = "4")]
    pub(super) filename: i64,
}

/// Field numbers of the profile itself, whose fields are written one after another.
pub(super) mod field {
    pub(in crate::pprof) const SAMPLE_TYPE: u32 = 1;
    pub(in crate::pprof) const SAMPLE: u32 = 2;
    pub(in crate::pprof) const MAPPING: u32 = 3;
    pub(in crate::pprof) const LOCATION: u32 = 4;
    pub(in crate::pprof) const FUNCTION: u32 = 5;
    pub(in crate::pprof) const STRING_TABLE: u32 = 6;
    pub(in crate::pprof) const TIME_NANOS: u32 = 9;
    pub(in crate::pprof) const DURATION_NANOS: u32 = 10;
    pub(in crate::pprof) const PERIOD_TYPE: u32 = 11;
    pub(in crate::pprof) const PERIOD: u32 = 12;
    pub(in crate::pprof) const DEFAULT_SAMPLE_TYPE: u32 = 14;
}
