//! From addresses to calls: by unit, each read once, several at a time.

use super::Dwarf;
use super::functions::{self, Functions};
use super::lines::{self, Row};
use super::lists::{Code, Lists};
use super::names::Names;
use super::split::SplitFiles;
use super::units::Unit;
use crate::addresses::Addresses;
use crate::lookup::Call;
use crate::work::Work;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::sync::Arc;

/// What was found of each address; empty: nothing.
pub(crate) type Found = Vec<Vec<Call>>;

/// How many units that claim the same address are asked.
const MAX_ROUNDS: usize = 4;

/// How much work may be done at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    pub(crate) threads: usize,
    /// Bytes of debug information that may be in memory.
    pub(crate) memory: u64,
    /// Whether that is a part only: others work at the same time.
    pub(crate) is_part: bool,
}

/// A unit and the addresses that are to be found in it.
struct Job<'a> {
    unit: &'a Unit,
    addresses: Vec<u64>,
    /// Index of each among all addresses.
    indexes: Vec<u32>,
}

impl Dwarf {
    /// Finds the calls at each of the addresses.
    pub(crate) fn find(&self, addresses: &Addresses, effort: Effort) -> Found {
        let mut found = vec![Vec::new(); addresses.as_slice().len()];
        let mut claims = self.claims(addresses);
        for _ in 0..MAX_ROUNDS {
            let jobs = self.jobs(addresses, &mut claims, &found);
            if jobs.is_empty() {
                break;
            }
            self.answer_jobs(jobs, effort, &mut found);
        }
        found
    }

    /// For each address the units that claim it, in the order they are to be asked. Units that do not say what they
    /// cover come last.
    fn claims(&self, addresses: &Addresses) -> Vec<Vec<u32>> {
        let mut claims = vec![Vec::new(); addresses.as_slice().len()];
        let mut silent = Vec::new();
        let work = self.work();
        for (at, unit) in (0u32..).zip(&self.units) {
            let root = &unit.root;
            let code = Code { low_pc: root.low_pc, high_pc: root.high_pc, ranges: root.ranges };
            let stated = self.lists(unit, &work).each(&code, |start, end| {
                let indexes = addresses.range(start, end);
                if work.take(indexes.len() as u64).is_none() {
                    return;
                }
                for index in indexes {
                    let claim: &mut Vec<u32> = &mut claims[index];
                    if claim.len() < MAX_ROUNDS && claim.last() != Some(&at) {
                        claim.push(at);
                    }
                }
            });
            if stated.is_none() && root.line_program.is_some() && silent.len() < MAX_ROUNDS {
                silent.push(at);
            }
        }
        for claim in claims.iter_mut().filter(|claim| claim.is_empty()) {
            claim.extend_from_slice(&silent);
        }
        // The first to be asked is the last, to be popped.
        claims.iter_mut().for_each(|claim| claim.reverse());
        claims
    }

    /// The next unit of each address without a function.
    fn jobs(&self, addresses: &Addresses, claims: &mut [Vec<u32>], found: &Found) -> Vec<Job<'_>> {
        let mut by_unit: FxHashMap<u32, Job<'_>> = FxHashMap::default();
        let each = addresses.as_slice().iter().zip(claims).zip(found);
        for (index, ((&address, claim), found)) in (0u32..).zip(each) {
            if found.iter().any(|call| call.function.is_some()) {
                continue;
            }
            let Some(at) = claim.pop() else { continue };
            let Some(unit) = self.units.get(at as usize) else { continue };
            let job = by_unit.entry(at).or_insert_with(|| Job {
                unit,
                addresses: Vec::new(),
                indexes: Vec::new(),
            });
            job.addresses.push(address);
            job.indexes.push(index);
        }
        let mut jobs: Vec<_> = by_unit.into_values().collect();
        // Large ones first, so that none is left to one thread at the end.
        jobs.sort_unstable_by_key(|job| (std::cmp::Reverse(job.unit.len), job.unit.offset));
        jobs
    }

    fn answer_jobs(&self, jobs: Vec<Job<'_>>, effort: Effort, found: &mut Found) {
        let split = SplitFiles::of(self, effort.memory);
        let fitting = jobs.iter().scan(0u64, |sum, job| {
            *sum = sum.saturating_add(job.unit.len);
            Some(*sum)
        });
        let fitting = fitting.take_while(|&sum| sum <= effort.memory).count();
        let threads = effort.threads.min(fitting).min(jobs.len()).max(1);
        let (sender, receiver) = crossbeam_channel::unbounded();
        for job in jobs.into_iter().filter(|job| job.unit.len <= effort.memory) {
            // The receiver is alive.
            let _ = sender.send(job);
        }
        drop(sender);
        let results = std::thread::scope(|scope| {
            let worker = || {
                let work = self.work();
                let mut worker = Worker::new(self, &split, &work);
                receiver.iter().flat_map(|job| worker.unit(job)).collect::<Vec<_>>()
            };
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(worker)).collect();
            let mut results = worker();
            for thread in others {
                results
                    .extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            results
        });
        for (index, calls) in results {
            if let Some(found) = found.get_mut(index as usize)
                && (found.is_empty() || calls.iter().any(|call| call.function.is_some()))
            {
                *found = calls;
            }
        }
    }
}

/// One thread's part.
struct Worker<'a> {
    dwarf: &'a Dwarf,
    split: &'a SplitFiles<'a>,
    names: Names<'a>,
    work: &'a Work,
}

impl<'a> Worker<'a> {
    fn new(dwarf: &'a Dwarf, split: &'a SplitFiles<'a>, work: &'a Work) -> Self {
        Self { dwarf, split, names: Names::new(dwarf, work), work }
    }

    /// Answers for the addresses of one unit.
    fn unit(&mut self, job: Job<'_>) -> Vec<(u32, Vec<Call>)> {
        let addresses = Addresses::new(job.addresses);
        let unit = job.unit;
        let program = unit
            .root
            .line_program
            .and_then(|at| lines::program_bytes(&self.dwarf.lines, at, self.work));
        let header = program.as_ref().and_then(|bytes| lines::header(bytes, unit.encoding));
        let rows = header.as_ref().map(|header| lines::rows(header, &addresses, self.work));
        let (functions, names) = self.functions(unit, &addresses);
        let mut files: FxHashMap<u64, Option<Arc<str>>> = FxHashMap::default();
        let mut file = |index: u64| {
            let header = header.as_ref()?;
            files.entry(index).or_insert_with(|| self.names.path(unit, header, index)).clone()
        };
        let mut answers = Vec::with_capacity(job.indexes.len());
        for (at, index) in job.indexes.into_iter().enumerate() {
            let mut row = rows.as_ref().and_then(|rows| rows.get(at).copied().flatten());
            let mut calls = Vec::new();
            for (link_at, link) in functions.chain(at) {
                let function = names.get(link_at as usize).cloned().flatten();
                calls.push(call(function, row, &mut file));
                row = Some(Row {
                    file: link.call_file,
                    line: link.call_line,
                    column: link.call_column,
                });
            }
            if calls.is_empty() && row.is_some_and(|row| row.line > 0) {
                calls.push(call(None, row, &mut file));
            }
            if !calls.is_empty() {
                answers.push((index, calls));
            }
        }
        answers
    }

    /// Walks over the unit that has the functions: the other half, if there is one.
    fn functions(
        &mut self,
        unit: &Unit,
        addresses: &Addresses,
    ) -> (Functions, Vec<Option<Arc<str>>>) {
        if let Some(half) = self.split.half(unit) {
            let lists = self.split.lists(unit, &half, self.work);
            return walked(
                &mut Names::new(&half.dwarf, self.work),
                &half.dwarf,
                &half.unit,
                &lists,
                addresses,
            );
        }
        let lists = self.dwarf.lists(unit, self.work);
        walked(&mut self.names, self.dwarf, unit, &lists, addresses)
    }
}

fn walked(
    names: &mut Names<'_>,
    dwarf: &Dwarf,
    unit: &Unit,
    lists: &Lists<'_>,
    addresses: &Addresses,
) -> (Functions, Vec<Option<Arc<str>>>) {
    let work = lists.work.take(unit.len);
    let bytes: Option<Cow<'_, [u8]>> = work.and_then(|()| dwarf.info.read(unit.offset, unit.len));
    let (Some(bytes), Some(table)) = (bytes, names.table(unit)) else {
        return (Functions::default(), Vec::new());
    };
    let first = usize::try_from(unit.header_len).unwrap_or(usize::MAX);
    let functions = functions::walk(&bytes, first, &table, lists, addresses);
    let entries = functions.links.iter().map(|link| link.entry);
    let texts = names.functions(unit, &bytes, &table, entries);
    (functions, texts)
}

fn call(
    function: Option<Arc<str>>,
    row: Option<Row>,
    file: &mut impl FnMut(u64) -> Option<Arc<str>>,
) -> Call {
    let Some(row) = row else { return Call { function, ..Call::default() } };
    Call {
        function,
        file: file(row.file),
        line: (row.line > 0).then_some(row.line),
        column: (row.column > 0).then_some(row.column),
    }
}
