//! The numbers records and their variants have in a file.

use crate::record::{ImageKind, Truncation};

pub(crate) const EPOCH: u8 = 1;
pub(crate) const SETTINGS: u8 = 2;
pub(crate) const HOST: u8 = 3;
pub(crate) const IMAGE: u8 = 4;
pub(crate) const PROCESS: u8 = 5;
pub(crate) const THREAD: u8 = 6;
pub(crate) const FRAME: u8 = 7;
pub(crate) const STACK: u8 = 8;
pub(crate) const SAMPLE: u8 = 9;
pub(crate) const COMM: u8 = 10;
pub(crate) const COMMAND_LINE: u8 = 11;
pub(crate) const THREAD_NAME: u8 = 12;
pub(crate) const FORK: u8 = 13;
pub(crate) const EXEC: u8 = 14;
pub(crate) const PROCESS_EXIT: u8 = 15;
pub(crate) const THREAD_EXIT: u8 = 16;
pub(crate) const MAPPING: u8 = 17;
pub(crate) const UNMAPPING: u8 = 18;
pub(crate) const LOST: u8 = 19;
pub(crate) const THROTTLE: u8 = 20;
pub(crate) const GAP: u8 = 21;
pub(crate) const PAUSE: u8 = 22;
pub(crate) const GENERATED_NAME: u8 = 23;
pub(crate) const SYMBOL: u8 = 24;
pub(crate) const ANNOTATION: u8 = 25;
pub(crate) const COUNTER: u8 = 26;
pub(crate) const END: u8 = 27;
/// From here on: records of later versions, each with one string, that may be passed over.
pub(crate) const SKIPPABLE: u8 = 128;

/// Frame kinds: below these a frame is code in image `kind - FRAME_CODE`.
pub(crate) const FRAME_JOINED: u64 = 0;
/// Followed by the reason in the address column.
pub(crate) const FRAME_TRUNCATED: u64 = 1;
pub(crate) const FRAME_CODE: u64 = 2;

/// Every image kind with its number.
const IMAGE_KINDS: [(ImageKind, u8); 6] = [
    (ImageKind::Elf, 0),
    (ImageKind::File, 1),
    (ImageKind::Vdso, 2),
    (ImageKind::Kernel, 3),
    (ImageKind::Generated, 4),
    (ImageKind::Unknown, 5),
];

/// Every truncation with its number.
const TRUNCATIONS: [(Truncation, u8); 7] = [
    (Truncation::OutsideCapture, 0),
    (Truncation::NoUnwindInfo, 1),
    (Truncation::BadCfa, 2),
    (Truncation::NullReturnAddress, 3),
    (Truncation::DepthLimit, 4),
    (Truncation::Loop, 5),
    (Truncation::NoRegisters, 6),
];

fn number_of<T: Copy + PartialEq>(table: &[(T, u8)], value: T) -> Option<u8> {
    table.iter().find(|&&(known, _)| known == value).map(|&(_, number)| number)
}

fn value_of<T: Copy>(table: &[(T, u8)], number: u64) -> Option<T> {
    table.iter().find(|&&(_, known)| u64::from(known) == number).map(|&(value, _)| value)
}

pub(crate) fn image_kind_number(kind: ImageKind) -> Option<u8> {
    number_of(&IMAGE_KINDS, kind)
}

pub(crate) fn image_kind(number: u64) -> Option<ImageKind> {
    value_of(&IMAGE_KINDS, number)
}

pub(crate) fn truncation_number(reason: Truncation) -> Option<u8> {
    number_of(&TRUNCATIONS, reason)
}

pub(crate) fn truncation(number: u64) -> Option<Truncation> {
    value_of(&TRUNCATIONS, number)
}
