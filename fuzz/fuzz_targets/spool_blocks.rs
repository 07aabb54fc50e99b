//! Blocks with right checksums and arbitrary content: what lies behind the checksums.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use stackpulse_fuzz::{block, check_readers, header};

#[derive(Arbitrary, Debug)]
enum Payload<'a> {
    /// Anything.
    Bytes(&'a [u8]),
    /// A preface and columns of records, uncompressed.
    Records { preface: [u8; 13], columns: [&'a [u8]; 13] },
    /// Columns of names, uncompressed.
    Names { columns: [&'a [u8]; 4] },
}

#[derive(Arbitrary, Debug)]
struct Block<'a> {
    kind: u8,
    flags: u8,
    /// Added to the number the block should have; mostly zero.
    skew: u8,
    payload: Payload<'a>,
}

fn number(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

fn columns(out: &mut Vec<u8>, columns: &[&[u8]]) {
    number(out, columns.len());
    for column in columns {
        out.push(0);
        number(out, column.len());
    }
    out.extend(columns.concat());
}

fuzz_target!(|blocks: Vec<Block<'_>>| {
    let mut file = header();
    for (at, part) in (0u32..).zip(blocks.iter().take(32)) {
        let mut payload = Vec::new();
        let kind = match &part.payload {
            Payload::Bytes(bytes) => {
                payload.extend_from_slice(bytes);
                part.kind % 6
            }
            Payload::Records { preface, columns: parts } => {
                let mut preface = preface.map(|byte| byte & 0x7f);
                // The unit of time; most numbers would be beyond its limit.
                preface[6] %= 24;
                payload.extend(preface);
                columns(&mut payload, parts);
                1
            }
            Payload::Names { columns: parts } => {
                columns(&mut payload, parts);
                3
            }
        };
        let skew = u32::from(part.skew.saturating_sub(250));
        file.extend(block(kind, part.flags & 1, at.wrapping_add(skew), &payload));
    }
    check_readers(&file);
});
