//! A recursion that is deeper than what is captured of it.

use crate::script::{World, attached, run, run_with, sample, task, with_kernel_frames};
use crate::stacks::image;
use stackpulse_perf::Event;
use stackpulse_track::ImageFile;

const MAPS: &str = "40000-41000 r-xp 00000000 00:00 1 /prog\n";
const TOP: u64 = 0x7fff_0000;
/// Of one thread.
const SAMPLES: usize = 400;

/// Numbers that look random, from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A program whose outermost frame is in its entry code.
fn world() -> World {
    let mut world = World::default();
    world.images.insert(b"/prog".to_vec(), ImageFile { entry_svma: 0x1080, ..image() });
    world
}

/// The pc of each frame, outermost first; each frame is of two words.
struct Thread(Vec<u64>);

impl Thread {
    fn new() -> Self {
        Self(vec![0x40090])
    }

    /// Returns so often, and calls so often, from one of four places.
    fn go(&mut self, returns: u64, calls: u64, random: &mut Random) {
        let left = self.0.len().saturating_sub(usize::try_from(returns).unwrap()).max(1);
        self.0.truncate(left);
        self.0.extend((0..calls).map(|_| 0x40010 + 0x10 * random.below(4)));
    }

    /// A sample that captures the innermost frames alone.
    fn sample(&self, time_ns: u64, most: usize) -> Event {
        let sp = TOP - 16 * self.0.len() as u64;
        let outer = self.0.iter().rev().skip(1).chain([&0]);
        let words: Vec<u64> = outer.take(most).flat_map(|&pc| [7, pc]).collect();
        sample(time_ns, task(10, 10), self.0.last().copied().unwrap(), (sp, 1), &words)
    }

    /// What the sample must show.
    fn truth(&self) -> Vec<String> {
        let pcs = self.0.iter().rev().enumerate();
        pcs.map(|(at, pc)| format!("/prog+{:#x}", pc - 0x3f000 - u64::from(at > 0))).collect()
    }
}

/// How many stacks were joined, and how many of these are not the true ones. Those that are not joined are checked.
fn joined(seed: u64, most_steps: u64) -> (usize, usize) {
    const CAPTURED: usize = 8;
    let mut random = Random(seed);
    let mut thread = Thread::new();
    let (mut events, mut truths) = (vec![attached(1, 10, MAPS)], Vec::new());
    for time_ns in (2u64..).take(SAMPLES) {
        let (returns, calls) = (random.below(most_steps), random.below(most_steps));
        thread.go(returns, calls, &mut random);
        events.push(thread.sample(time_ns, CAPTURED));
        truths.push(thread.truth());
    }
    let lines = run(events, world());
    let (mut joined, mut wrong) = (0, 0);
    for (stack, truth) in lines.stacks.iter().zip(&truths) {
        let mut frames: Vec<&str> = stack.split(' ').collect();
        if frames.last() == Some(&"[outside_capture]") {
            frames.pop();
            assert!(frames.len() == CAPTURED + 1 && truth.len() >= frames.len());
            assert_eq!(frames, truth[..frames.len()]);
            continue;
        }
        let is_joined = frames.contains(&"[joined]");
        frames.retain(|frame| *frame != "[joined]");
        joined += usize::from(is_joined);
        let is_true = frames == *truth;
        wrong += usize::from(!is_true);
        assert!(is_true || is_joined, "{stack} is {}", truth.join(" "));
    }
    (joined, wrong)
}

#[test]
fn a_cut_stack_is_joined_to_the_callers_that_its_thread_had_before() {
    let script = || {
        let (mut thread, mut random) = (Thread::new(), Random(1));
        thread.go(0, 6, &mut random);
        let mut events = vec![attached(1, 10, MAPS), thread.sample(2, 8)];
        thread.go(0, 4, &mut random);
        events.push(thread.sample(3, 8));
        (events, thread.truth())
    };
    let (events, truth) = script();
    let mut expected = truth.clone();
    expected.insert(9, "[joined]".to_owned());
    assert_eq!(run(events, world()).stacks[1], expected.join(" "));

    // It can be switched off.
    let mut options = with_kernel_frames();
    options.join_cut_stacks = false;
    let cut = [&truth[..9].join(" "), "[outside_capture]"].join(" ");
    assert_eq!(run_with(options, script().0, world()).stacks[1], cut);
}

#[test]
fn joined_stacks_are_true_while_samples_overlap() {
    let (mut all, mut all_wrong) = (0, 0);
    for seed in 0..30 {
        let (joined, wrong) = joined(seed, 8);
        all += joined;
        all_wrong += wrong;
    }
    assert!(all > 5_000, "{all}");
    assert_eq!(all_wrong, 0);
}

#[test]
fn hardly_a_stack_is_joined_wrongly_when_twice_the_captured_part_changes_between_samples() {
    // Where little of the last stack is left, what looks like the same frame is often another call from the same place.
    let (mut all, mut all_wrong) = (0, 0);
    for seed in 0..30 {
        let (joined, wrong) = joined(seed, 16);
        all += joined;
        all_wrong += wrong;
    }
    let stacks = 30 * SAMPLES;
    println!("of {stacks} stacks {all} are joined, {all_wrong} of them wrongly");
    assert!(all > 50, "{all}");
    assert!(all_wrong * 200 < stacks, "{all_wrong} of {stacks}");
}
