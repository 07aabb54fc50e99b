use super::*;
use crate::address_space::AddressSpace;
use crate::cfi::{CfiSections, Section};
use crate::image::{ImageFile, Segment};
use crate::{Captured, Unwinder};
use proptest::prelude::*;

/// Where the image and the generated code are mapped, and the highest word of the stack.
const IMAGE: u64 = 0x40_0000;
const GENERATED: u64 = 0x80_0000;
const TOP: u64 = 0x7fff_0000;

/// Call frame instructions of the functions, of 0x100 bytes each.
const FUNCTIONS: [&[u8]; 7] = [
    &[0x0e, 24],                                       // CFA = rsp + 24
    &[0x0c, 6, 16, 0x86, 2],                           // CFA = rbp + 16, rbp at CFA - 16
    &[0x0e, 40, 0x86, 2],                              // CFA = rsp + 40, rbp at CFA - 16
    &[0x07, 16],                                       // the outermost
    &[0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0], // CFA = *(rbp - 8), rbp at *rbp
    &[0x0c, 3, 16, 0x83, 2],                           // CFA = rbx + 16
    &[0x0e, 8],                                        // CFA = rsp + 8
];
const OUTERMOST: usize = 3;

fn eh_frame() -> Vec<u8> {
    let entry = |body: Vec<u8>| {
        let mut body = body;
        body.resize(body.len().next_multiple_of(8) + 4, 0);
        [&u32::try_from(body.len()).unwrap().to_le_bytes()[..], &body].concat()
    };
    // Version 1, no augmentation, factors 1 and -8, return address in 16; CFA = rsp + 8, the return address below it.
    let cie = [0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1];
    let mut section = entry(cie.to_vec());
    for (start, instructions) in (0x1000u64..).step_by(0x100).zip(FUNCTIONS) {
        let to_cie = u32::try_from(section.len() + 4).unwrap();
        let mut fde = to_cie.to_le_bytes().to_vec();
        fde.extend(start.to_le_bytes());
        fde.extend(0x100u64.to_le_bytes());
        fde.extend(instructions);
        section.extend(entry(fde));
    }
    section
}

fn image() -> ImageFile {
    ImageFile {
        segments: vec![Segment { file_offset: 0, file_size: 0x1000, svma: 0x1000 }],
        cfi: CfiSections {
            eh_frame: Section { svma: 0x8000, bytes: eh_frame() },
            ..CfiSections::default()
        },
        ..ImageFile::default()
    }
}

/// Numbers that look random, from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A thread whose functions call and return.
struct Thread {
    /// The words of the stack, outermost first: word `n` lies at `TOP - 8 * (n + 1)`.
    words: Vec<u64>,
    /// Of each frame: its pc, how many words were there before it, and the frame pointer in it.
    frames: Vec<(u64, usize, u64)>,
}

impl Thread {
    fn sp(&self) -> u64 {
        TOP - 8 * self.words.len() as u64
    }

    fn fp(&self) -> u64 {
        self.frames.last().map_or(0, |&(.., fp)| fp)
    }

    /// Calls a function, and lets it make its frame.
    fn call(&mut self, random: &mut Random) {
        let function = match random.below(60) {
            3 => 6,
            7..=9 => 7,
            10..=19 => 4,
            20..=34 => 1,
            35..=44 => 2,
            45.. => 0,
            other => usize::try_from(other).unwrap(),
        };
        let function = if self.frames.is_empty() { OUTERMOST } else { function };
        let before = self.words.len();
        let caller_fp = self.fp();
        if let Some(&(pc, ..)) = self.frames.last() {
            self.words.push(pc);
        }
        let mut fp = caller_fp;
        match function {
            0 => self.words.extend([random.below(9), caller_fp]),
            1 | 7 => {
                self.words.push(caller_fp);
                fp = self.sp();
                self.words.extend((0..random.below(4)).map(|_| random.0));
            }
            2 => {
                self.words.extend([caller_fp, 0, 1, 2]);
                fp = random.below(1 << 40);
            }
            4 => {
                let cfa = TOP - 8 * before as u64;
                self.words.push(caller_fp);
                fp = self.sp();
                self.words.extend([cfa, 7]);
            }
            _ => {}
        }
        let pc = match function {
            7 => GENERATED + 0x20,
            function => IMAGE + 0x100 * function as u64 + 1 + random.below(3),
        };
        self.frames.push((pc, before, fp));
    }

    fn returns(&mut self) {
        if self.frames.len() > 1
            && let Some((_, before, _)) = self.frames.pop()
        {
            self.words.truncate(before);
        }
    }

    /// The registers and the captured bytes, of which there are at most so many.
    fn sample(&self, random: &mut Random, most: usize) -> (Registers, Vec<u8>) {
        let mut registers = Registers::none(Arch::X86_64);
        (0..16).for_each(|number| registers.set(number, random.below(1 << 50)));
        registers.set(Registers::PC, self.frames.last().map_or(0, |&(pc, ..)| pc));
        registers.set(Registers::SP, self.sp());
        registers.set(Registers::fp_number(Arch::X86_64), self.fp());
        // rbx as the function that is found through it wants it.
        let before = self.frames.last().map_or(0, |&(_, before, _)| before);
        registers.set(3, TOP - 8 * before as u64 - 16);
        let bytes = self.words.iter().rev().take(most).flat_map(|word| word.to_le_bytes());
        (registers, bytes.collect())
    }
}

struct Both {
    space: AddressSpace,
    unwinder: Unwinder,
    last: LastStack<u64>,
    joined: usize,
}

impl Both {
    fn new() -> Self {
        let mut unwinder = Unwinder::new();
        unwinder.leave_cut_stacks();
        let image_index = unwinder.add_image();
        unwinder.provide(image_index, Some(image()));
        let mut space = AddressSpace::default();
        let shown = Shown::Image { image: image_index, file_offset: 0 };
        space.map(Region { start_avma: IMAGE, end_avma: IMAGE + 0x1000, shown });
        let shown = Shown::Anonymous;
        space.map(Region { start_avma: GENERATED, end_avma: GENERATED + 0x1000, shown });
        Self { space, unwinder, last: LastStack::default(), joined: 0 }
    }

    fn walk(&mut self, captured: &Captured<'_>, last: &mut LastStack<u64>) -> (Vec<u64>, Walk) {
        let walk = self.unwinder.unwind(&self.space, captured, last).unwrap();
        let found = self.unwinder.frames().iter().map(|frame| frame.address.lookup_avma());
        (found.collect(), walk)
    }

    /// Walks without a last stack, and with it; both must be the same.
    fn check(&mut self, registers: Registers, stack: &[u8]) {
        let captured = Captured { registers, stack };
        let (plain, plain_walk) = self.walk(&captured, &mut LastStack::default());
        let mut last = std::mem::take(&mut self.last);
        let (mut found, walk) = self.walk(&captured, &mut last);
        self.unwinder.remember(&walk, &found, &mut last);
        self.joined += walk.met;
        let met: Vec<u64> = last.outermost(walk.met).collect();
        found.extend(met.iter().rev());
        assert_eq!((&found, walk.cut), (&plain, plain_walk.cut), "{walk:?}");
        self.last = last;
    }
}

/// Lets a thread call and return, and samples it; returns how many frames were joined.
fn run(seed: u64, corrupts: bool) -> usize {
    let mut random = Random(seed);
    let mut thread = Thread { words: Vec::new(), frames: Vec::new() };
    let mut both = Both::new();
    for _ in 0..60 {
        for _ in 0..random.below(6) {
            thread.returns();
        }
        for _ in 0..=random.below(6) {
            thread.call(&mut random);
        }
        if corrupts && random.below(4) == 0 {
            let at = usize::try_from(random.below(thread.words.len().max(1) as u64)).unwrap();
            let value = match random.below(4) {
                0 => IMAGE + 0x100 * random.below(8) + 2,
                1 => thread.sp() + 8 * random.below(20),
                2 => 0,
                _ => random.below(1 << 48),
            };
            thread.words[at..].iter_mut().take(1).for_each(|word| *word = value);
        }
        let most = if random.below(5) == 0 { random.below(40) } else { 4096 };
        let (registers, bytes) = thread.sample(&mut random, usize::try_from(most).unwrap());
        both.check(registers, &bytes);
    }
    both.joined
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_walk_that_meets_the_last_stack_ends_as_the_plain_one(seed: u64) {
        run(seed, false);
    }

    #[test]
    fn changed_words_of_the_stack_are_never_joined_over(seed: u64) {
        run(seed, true);
    }
}

#[test]
fn most_frames_of_a_thread_that_calls_and_returns_are_joined() {
    // Without joins the tests above would compare two plain walks.
    let joined: usize = (0..20).map(|seed| run(seed, false)).sum();
    assert!(joined > 3_000, "{joined}");
}
