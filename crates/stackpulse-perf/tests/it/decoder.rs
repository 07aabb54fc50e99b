//! The decoder on any bytes, and beside another one.

use linux_perf_event_reader::{
    AttrFlags, BranchSampleFormat, CpuMode as TheirMode, Endianness, EventRecord, Mmap2FileId,
    PerfEventAttr, RawData, RawEventRecord, RecordParseInfo, RecordType, SampleFormat,
};
use proptest::prelude::*;
use stackpulse_perf::regs::{Arch, UserRegs};
use stackpulse_perf::{
    CpuMode, Decoded, RECORD_HEADER_LEN, RecordKind, SampleLayout, Task, branch_format, decode,
    field,
};

/// Fields that both decoders read; the other one takes a group's counter values for a single event's and the reverse.
const FIELDS: [u64; 14] = [
    field::IP,
    field::TID,
    field::TIME,
    field::ADDR,
    field::CALLCHAIN,
    field::ID,
    field::CPU,
    field::PERIOD,
    field::STREAM_ID,
    field::RAW,
    field::BRANCH_STACK,
    field::REGS_USER,
    field::STACK_USER,
    field::IDENTIFIER,
];

/// Writes records: numbers from a list, and lengths that fit.
struct Pen<'a> {
    bytes: Vec<u8>,
    values: std::iter::Cycle<std::slice::Iter<'a, u64>>,
}

impl<'a> Pen<'a> {
    fn new(kind: u32, misc: u16, values: &'a [u64]) -> Self {
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(misc.to_ne_bytes());
        bytes.extend([0; 2]);
        Self { bytes, values: values.iter().cycle() }
    }

    fn value(&mut self) -> u64 {
        *self.values.next().expect("values go round")
    }

    fn values(&mut self, count: u64) {
        for _ in 0..count {
            let value = self.value();
            self.bytes.extend(value.to_ne_bytes());
        }
    }

    /// A small length, and that many items of `each` values.
    fn list(&mut self, each: u64) {
        let len = self.value() % 9;
        self.bytes.extend(len.to_ne_bytes());
        self.values(len * each);
    }

    fn text(&mut self) {
        let len = usize::try_from(self.value() % 40).expect("small");
        let letters: Vec<u8> =
            self.values.by_ref().take(len).map(|value| (value % 200) as u8).collect();
        self.bytes.extend(letters);
        self.bytes.push(0);
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
    }

    /// The parts of a sample that `layout` has.
    fn sample(&mut self, layout: &SampleLayout) {
        let has = |field| u64::from(layout.has(field));
        let fixed = [field::IDENTIFIER, field::IP, field::TID, field::TIME, field::ADDR, field::ID];
        self.values(fixed.into_iter().map(has).sum());
        self.values(has(field::STREAM_ID) + has(field::CPU) + has(field::PERIOD));
        if layout.has(field::CALLCHAIN) {
            self.list(1);
        }
        if layout.has(field::RAW) {
            // Its length makes the whole a multiple of eight.
            let len = u32::try_from(self.value() % 5 * 8 + 4).expect("small");
            self.bytes.extend(len.to_ne_bytes());
            self.bytes.extend(std::iter::repeat_n(7, len as usize));
        }
        if layout.has(field::BRANCH_STACK) {
            let len = self.value() % 5;
            self.bytes.extend(len.to_ne_bytes());
            self.values(u64::from(layout.branch_format & branch_format::HW_INDEX != 0) + 3 * len);
        }
        if layout.has(field::REGS_USER) {
            let abi = self.value() % 3;
            self.bytes.extend(abi.to_ne_bytes());
            self.values(if abi == 0 { 0 } else { layout.user_regs_mask.count_ones().into() });
        }
        if layout.has(field::STACK_USER) {
            let words = self.value() % 20;
            self.bytes.extend((words * 8).to_ne_bytes());
            self.values(words);
            if words > 0 {
                let copied = self.value() % (words * 8 + 1);
                self.bytes.extend(copied.to_ne_bytes());
            }
        }
    }

    /// The trailer of other records.
    fn id(&mut self, layout: &SampleLayout) {
        let parts =
            [field::TID, field::TIME, field::ID, field::STREAM_ID, field::CPU, field::IDENTIFIER];
        let count = parts.into_iter().filter(|&part| layout.has(part)).count();
        self.values(if layout.id_all { count as u64 } else { 0 });
    }

    fn end(mut self) -> Vec<u8> {
        let size = u16::try_from(self.bytes.len()).expect("small");
        self.bytes[6..8].copy_from_slice(&size.to_ne_bytes());
        self.bytes
    }
}

prop_compose! {
    fn layouts()(
        chosen in proptest::collection::vec(any::<bool>(), FIELDS.len()),
        mask in any::<u64>(),
        id_all in any::<bool>(),
        hw_index in any::<bool>(),
    ) -> SampleLayout {
        let fields = FIELDS.iter().zip(chosen).filter(|(_, chosen)| *chosen).map(|(field, _)| field).sum();
        let branch_format = if hw_index { branch_format::HW_INDEX } else { 0 };
        SampleLayout { fields, user_regs_mask: mask, arch: Arch::X86_64, id_all, read_format: 0, branch_format }
    }
}

/// The same layout for the other decoder, which takes it from an attribute.
fn their_layout(layout: &SampleLayout) -> RecordParseInfo {
    // A `perf_event_attr` of the first size that has the registers' mask.
    let mut bytes = [0; 96];
    bytes[4..8].copy_from_slice(&96u32.to_ne_bytes());
    bytes[24..32].copy_from_slice(&layout.fields.to_ne_bytes());
    bytes[72..80].copy_from_slice(&layout.branch_format.to_ne_bytes());
    bytes[80..88].copy_from_slice(&layout.user_regs_mask.to_ne_bytes());
    let (mut attr, _) = PerfEventAttr::parse::<_, byteorder::NativeEndian>(&bytes[..]).unwrap();
    if layout.id_all {
        attr.flags |= AttrFlags::SAMPLE_ID_ALL;
    }
    assert_eq!(attr.sample_format, SampleFormat::from_bits_truncate(layout.fields));
    assert_eq!(
        attr.branch_sample_format,
        BranchSampleFormat::from_bits_truncate(layout.branch_format)
    );
    RecordParseInfo::new(
        &attr,
        if cfg!(target_endian = "little") {
            Endianness::LittleEndian
        } else {
            Endianness::BigEndian
        },
    )
}

fn theirs<'a>(bytes: &'a [u8], layout: &SampleLayout) -> RawEventRecord<'a> {
    let kind = u32::from_ne_bytes(bytes[..4].try_into().unwrap());
    let misc = u16::from_ne_bytes(bytes[4..6].try_into().unwrap());
    let data = RawData::Single(&bytes[RECORD_HEADER_LEN..]);
    RawEventRecord::new(RecordType(kind), misc, data, their_layout(layout))
}

fn task(pid: Option<i32>, tid: Option<i32>) -> Option<Task> {
    let task = Task { pid: pid?.cast_unsigned(), tid: tid?.cast_unsigned() };
    // That is how the kernel says that it has none.
    (task.pid != u32::MAX && task.tid != u32::MAX).then_some(task)
}

fn mode(mode: TheirMode) -> CpuMode {
    match mode {
        TheirMode::Kernel => CpuMode::Kernel,
        TheirMode::User => CpuMode::User,
        TheirMode::Hypervisor => CpuMode::Hypervisor,
        TheirMode::GuestKernel => CpuMode::GuestKernel,
        TheirMode::GuestUser => CpuMode::GuestUser,
        _ => CpuMode::Unknown,
    }
}

fn agree_on_sample(bytes: &[u8], layout: &SampleLayout) {
    let theirs = match theirs(bytes, layout).parse() {
        Ok(EventRecord::Sample(sample)) => sample,
        Ok(other) => panic!("{other:?}"),
        Err(_) => {
            decode(bytes, layout).unwrap_err();
            return;
        }
    };
    let Decoded { time_ns, cpu, record: RecordKind::Sample(head, parts) } =
        decode(bytes, layout).unwrap()
    else {
        panic!("a sample");
    };
    assert_eq!((time_ns, cpu), (theirs.timestamp, theirs.cpu));
    assert_eq!(head.task, task(theirs.pid, theirs.tid));
    assert_eq!(head.ip_avma, theirs.ip.unwrap_or_default());
    assert_eq!(head.period, theirs.period.unwrap_or(1));
    assert_eq!(head.cpu_mode, mode(theirs.cpu_mode));
    let chain = theirs
        .callchain
        .map(|chain| (0..chain.len()).filter_map(|at| chain.get(at)).collect::<Vec<_>>());
    let ours = bytes[parts.callchain]
        .chunks_exact(8)
        .map(|value| u64::from_ne_bytes(value.try_into().unwrap()));
    assert_eq!(ours.collect::<Vec<_>>(), chain.unwrap_or_default());
    let stack = theirs.user_stack.map(|(stack, copied)| {
        stack.as_slice().iter().copied().take(usize::try_from(copied).unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(bytes[parts.stack], stack.unwrap_or_default());
    assert_eq!(parts.regs.is_some(), theirs.user_regs.is_some());
    if let (Some((abi, values)), Some(theirs)) = (parts.regs, theirs.user_regs) {
        let ours = UserRegs::new(layout.arch, abi, layout.user_regs_mask, &bytes[values]).unwrap();
        for register in 0..64 {
            assert_eq!(ours.get(register), theirs.get(register.into()), "register {register}");
        }
    }
}

fn agree_on_other(bytes: &[u8], layout: &SampleLayout) {
    let raw = theirs(bytes, layout);
    let id = raw.common_data().unwrap();
    let decoded = decode(bytes, layout).unwrap();
    assert_eq!((decoded.time_ns, decoded.cpu), (id.timestamp, id.cpu));
    let of = |pid: i32, tid: i32| Task { pid: pid.cast_unsigned(), tid: tid.cast_unsigned() };
    match (decoded.record, raw.parse().unwrap()) {
        (RecordKind::Comm { task, comm, exec }, EventRecord::Comm(theirs)) => {
            assert_eq!((task, exec), (of(theirs.pid, theirs.tid), theirs.is_execve));
            assert_eq!(*comm, *theirs.name.as_slice());
        }
        (RecordKind::Fork { child, parent }, EventRecord::Fork(theirs)) => {
            assert_eq!((child, parent), (of(theirs.pid, theirs.tid), of(theirs.ppid, theirs.ptid)));
        }
        (RecordKind::Exit { task }, EventRecord::Exit(theirs)) => {
            assert_eq!(task, of(theirs.pid, theirs.tid));
        }
        (RecordKind::Lost { events }, EventRecord::Lost(theirs)) => {
            assert_eq!(events, theirs.count);
        }
        (RecordKind::Throttle { throttled: true }, EventRecord::Throttle(_))
        | (RecordKind::Throttle { throttled: false }, EventRecord::Unthrottle(_)) => {}
        (RecordKind::Mmap(mmap), EventRecord::Mmap(theirs)) => {
            assert_eq!(mmap.task, of(theirs.pid, theirs.tid));
            assert_eq!((mmap.start_avma, mmap.len_bytes), (theirs.address, theirs.length));
            assert_eq!(
                (mmap.file_offset, mmap.executable),
                (theirs.page_offset, theirs.is_executable)
            );
            assert_eq!(*mmap.path, *theirs.path.as_slice());
        }
        (RecordKind::Mmap(mmap), EventRecord::Mmap2(theirs)) => {
            assert_eq!(mmap.task, of(theirs.pid, theirs.tid));
            assert_eq!((mmap.start_avma, mmap.len_bytes), (theirs.address, theirs.length));
            assert_eq!(
                (mmap.file_offset, mmap.executable),
                (theirs.page_offset, theirs.protection & 4 != 0)
            );
            assert_eq!(*mmap.path, *theirs.path.as_slice());
            match theirs.file_id {
                Mmap2FileId::BuildId(id) => {
                    assert_eq!(mmap.file.build_id.as_deref(), Some(&id[..]));
                }
                Mmap2FileId::InodeAndVersion(file) => {
                    assert_eq!(mmap.file.device, (file.major, file.minor));
                    assert_eq!(
                        (mmap.file.inode, mmap.file.inode_generation),
                        (file.inode, file.inode_generation)
                    );
                    assert_eq!(mmap.file.build_id, None);
                }
            }
        }
        (RecordKind::Other { kind }, EventRecord::Raw(_) | EventRecord::ContextSwitch(_)) => {
            assert!(kind > 10 || kind == 8, "{kind}");
        }
        (ours, theirs) => panic!("{ours:?} and {theirs:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn samples_are_read_as_another_decoder_reads_them(
        layout in layouts(),
        misc in any::<u16>(),
        values in proptest::collection::vec(any::<u64>(), 1..60),
    ) {
        let mut pen = Pen::new(9, misc, &values);
        pen.sample(&layout);
        agree_on_sample(&pen.end(), &layout);
    }

    #[test]
    fn samples_that_end_early_are_refused_as_by_another_decoder(
        layout in layouts(),
        values in proptest::collection::vec(any::<u64>(), 1..60),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut pen = Pen::new(9, 2, &values);
        pen.sample(&layout);
        let words = pen.bytes.len() / 8;
        pen.bytes.truncate(8 * (1 + cut.index(words)));
        agree_on_sample(&pen.end(), &layout);
    }

    #[test]
    fn other_records_are_read_as_another_decoder_reads_them(
        layout in layouts(),
        kind in prop_oneof![1u32..9, 10u32..13, 14u32..22],
        misc in any::<u16>(),
        values in proptest::collection::vec(any::<u64>(), 1..60),
    ) {
        let mut pen = Pen::new(kind, misc, &values);
        match kind {
            1 => { pen.values(4); pen.text(); }
            3 => { pen.values(1); pen.text(); }
            10 => {
                pen.values(4);
                let at = pen.bytes.len();
                pen.values(4);
                // A build id has at most 20 bytes.
                pen.bytes[at] %= 21;
                pen.text();
            }
            _ => pen.values(3),
        }
        pen.id(&layout);
        agree_on_other(&pen.end(), &layout);
    }

    #[test]
    fn any_bytes_are_a_record_or_an_error(
        layout in layouts(),
        read_format in 0u64..32,
        fields in any::<u64>(),
        kind in prop_oneof![0u32..25, any::<u32>()],
        mut bytes in proptest::collection::vec(any::<u8>(), 0..400),
        is_sound in any::<bool>(),
    ) {
        if is_sound && bytes.len() >= RECORD_HEADER_LEN {
            let size = u16::try_from(bytes.len()).unwrap();
            bytes[..4].copy_from_slice(&kind.to_ne_bytes());
            bytes[6..8].copy_from_slice(&size.to_ne_bytes());
        }
        let layout = SampleLayout { read_format, fields: layout.fields | fields & field::READ, ..layout };
        if let Ok(Decoded { record: RecordKind::Sample(_, parts), .. }) = decode(&bytes, &layout) {
            prop_assert!(bytes.get(parts.callchain).is_some() && bytes.get(parts.stack).is_some());
            prop_assert!(parts.regs.is_none_or(|(_, values)| bytes.get(values).is_some()));
        }
    }
}

/// What the other decoder misreads: the values of a group's counters, with everything that comes with them.
#[test]
fn counter_values_are_passed_over_in_every_form() {
    use stackpulse_perf::read_format::{GROUP, ID, LOST, TOTAL_TIME_ENABLED, TOTAL_TIME_RUNNING};
    let check = |read_format: u64, values: &[u64]| {
        let layout = SampleLayout {
            fields: field::READ | field::CALLCHAIN,
            user_regs_mask: 0,
            arch: Arch::X86_64,
            id_all: true,
            read_format,
            branch_format: 0,
        };
        let mut pen = Pen::new(9, 2, values);
        pen.values(values.len() as u64);
        pen.bytes.extend([1u64, 0x1234].into_iter().flat_map(u64::to_ne_bytes));
        let bytes = pen.end();
        let RecordKind::Sample(_, parts) = decode(&bytes, &layout).unwrap().record else {
            panic!("a sample")
        };
        assert_eq!(bytes[parts.callchain], 0x1234u64.to_ne_bytes(), "{read_format}");
    };
    check(0, &[5]);
    check(TOTAL_TIME_ENABLED | TOTAL_TIME_RUNNING, &[5, 1, 2]);
    check(ID | LOST, &[5, 7, 9]);
    check(GROUP, &[3, 5, 5, 5]);
    check(GROUP | TOTAL_TIME_ENABLED | ID, &[2, 1, 5, 7, 5, 7]);
    check(GROUP | TOTAL_TIME_ENABLED | TOTAL_TIME_RUNNING | ID | LOST, &[1, 1, 2, 5, 7, 9]);
}
