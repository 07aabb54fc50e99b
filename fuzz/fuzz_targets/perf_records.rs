//! Arbitrary records in arbitrary layouts into the decoder: an error, or parts that lie within the record.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stackpulse_perf::regs::Arch;
use stackpulse_perf::{RecordKind, Sample, SampleLayout, decode};

/// A layout, and a record's header without its size, which is that of the bytes.
type Input<'a> = ((u64, u64, u64, u64, bool), u32, u16, &'a [u8]);

fuzz_target!(|input: Input<'_>| {
    let ((fields, user_regs_mask, read_format, branch_format, id_all), kind, misc, body) = input;
    let arch = Arch::X86_64;
    let layout = SampleLayout { fields, user_regs_mask, arch, id_all, read_format, branch_format };
    // Most numbers are records of no interest.
    let kind = if kind < 1 << 24 { kind % 16 } else { kind };
    let Ok(size) = u16::try_from(8 + body.len()) else { return };
    let mut bytes = [&kind.to_ne_bytes()[..], &misc.to_ne_bytes(), &size.to_ne_bytes()].concat();
    bytes.extend_from_slice(body);
    let Ok(decoded) = decode(&bytes, &layout) else { return };
    if let RecordKind::Sample(head, parts) = decoded.record {
        for range in [&parts.callchain, &parts.stack] {
            assert!(bytes.get(range.clone()).is_some());
        }
        let has_regs = parts.regs.is_some();
        let bytes = bytes.into_boxed_slice().into();
        let sample = Sample::new(head, arch, user_regs_mask, parts, bytes);
        assert_eq!(sample.user_regs().is_some(), has_regs);
    }
});
