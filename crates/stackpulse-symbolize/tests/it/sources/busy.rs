//! Generic code, closures, iterators and formatting.
use std::collections::BTreeMap;
use std::fmt::Write;

trait Step {
    fn step(&self, by: u64) -> u64;
}

struct Add(u64);
struct Xor(u64);

impl Step for Add {
    #[inline(never)]
    fn step(&self, by: u64) -> u64 {
        (0..by).filter(|n| n % 3 != 0).map(|n| n * self.0).sum()
    }
}

impl Step for Xor {
    fn step(&self, by: u64) -> u64 {
        (0..by).fold(self.0, |sum, n| sum.rotate_left(5) ^ n)
    }
}

#[inline(never)]
fn run(steps: &[Box<dyn Step>], rounds: u64) -> BTreeMap<u64, String> {
    let mut seen = BTreeMap::new();
    for round in 0..rounds {
        for step in steps {
            let value = step.step(round);
            let text: &mut String = seen.entry(value % 97).or_default();
            write!(text, "{value:x}").expect("strings take all");
        }
    }
    seen
}

fn main() {
    let rounds = std::env::args().count() as u64 * 50;
    let steps: Vec<Box<dyn Step>> = vec![Box::new(Add(3)), Box::new(Xor(9))];
    let mut texts: Vec<_> = run(&steps, rounds).into_values().collect();
    texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
    println!("{}", texts.first().map_or(0, String::len));
}
