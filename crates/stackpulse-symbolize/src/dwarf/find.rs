//! From addresses to calls: by unit, each read once, several at a time.

use super::Dwarf;
use super::functions::{self, Functions};
use super::lines::{self, Program, Row};
use super::lists::{Code, Lists};
use super::names::Names;
use super::split::SplitFiles;
use super::units::Unit;
use crate::addresses::Addresses;
use crate::allowance::Grant;
use crate::lookup::Call;
use crate::work::Work;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What was found of each address; empty: nothing.
pub(crate) type Found = Vec<Vec<Call>>;

/// Steps that a unit is worth, however small.
const STEPS_PER_JOB: u64 = 64;

/// What a call takes in memory, in a list that doubles when it is full, with its file's place in a table.
const CALL_BYTES: u64 = 3 * size_of::<Call>() as u64;

/// How many units that claim the same address are asked.
const MAX_ROUNDS: usize = 4;

/// A unit and the addresses that are to be found in it.
struct Job<'a> {
    unit: &'a Unit,
    addresses: Vec<u64>,
    /// Index of each among all addresses.
    indexes: Vec<u32>,
}

impl Dwarf {
    /// Finds the calls at each of the addresses, with up to so many threads.
    pub(crate) fn find(&self, addresses: &Addresses, threads: usize) -> Found {
        let mut found = vec![Vec::new(); addresses.as_slice().len()];
        let mut claims = self.claims(addresses);
        for _ in 0..MAX_ROUNDS {
            let jobs = self.jobs(addresses, &mut claims, &found);
            if jobs.is_empty() {
                break;
            }
            self.answer_jobs(&jobs, threads, &mut found);
        }
        found
    }

    /// For each address the units that claim it, in the order they are to be asked. Units that do not say what they
    /// cover come last.
    fn claims(&self, addresses: &Addresses) -> Vec<Vec<u32>> {
        let mut claims = vec![Vec::new(); addresses.as_slice().len()];
        let mut silent = Vec::new();
        let work = self.allowance.work();
        for (at, unit) in (0u32..).zip(&self.units.list) {
            if work.take(1).is_none() {
                break;
            }
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
            let Some(unit) = self.units.list.get(at as usize) else { continue };
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

    fn answer_jobs(&self, jobs: &[Job<'_>], threads: usize, found: &mut Found) {
        let threads = self.fitting(jobs, threads);
        let refusals = self.allowance.refusals();
        let mut results = self.answered(jobs, threads);
        if self.allowance.refusals() > refusals && threads > 1 {
            // What is refused must not depend on who came first.
            self.allowance.forget_refusals(refusals);
            drop(results);
            results = self.answered(jobs, 1);
        }
        for (index, calls) in results {
            if let Some(found) = found.get_mut(index as usize)
                && (found.is_empty() || calls.iter().any(|call| call.function.is_some()))
            {
                *found = calls;
            }
        }
    }

    /// How many threads have memory for a unit each, and as much again for what is made of it.
    fn fitting(&self, jobs: &[Job<'_>], threads: usize) -> usize {
        let left = self.allowance.memory_left();
        let needs = jobs.iter().scan(0u64, |sum, job| {
            *sum = sum.saturating_add(job.unit.len.saturating_mul(2));
            Some(*sum)
        });
        threads.min(needs.take_while(|&need| need <= left).count()).max(1)
    }

    /// Answers the jobs, the first first; those after a stop, or that cost too much, have no answers.
    fn answered(&self, jobs: &[Job<'_>], threads: usize) -> Vec<(u32, Vec<Call>)> {
        let split = SplitFiles::of(self);
        let (sender, receiver) = crossbeam_channel::unbounded();
        for job in jobs {
            // The receiver is alive.
            let _ = sender.send(job);
        }
        drop(sender);
        std::thread::scope(|scope| {
            let worker = || {
                let work = self.allowance.work();
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
        })
    }
}

/// One thread's part.
struct Worker<'a> {
    dwarf: &'a Dwarf,
    split: &'a SplitFiles<'a>,
    names: Names<'a>,
    /// The memory of the answers, until they are all together.
    answers: Grant,
    work: &'a Work,
}

impl<'a> Worker<'a> {
    fn new(dwarf: &'a Dwarf, split: &'a SplitFiles<'a>, work: &'a Work) -> Self {
        let answers = work.allowance().empty_grant();
        Self { dwarf, split, names: Names::new(dwarf, work), answers, work }
    }

    /// Answers for the addresses of one unit.
    fn unit(&mut self, job: &Job<'_>) -> Vec<(u32, Vec<Call>)> {
        let mut answers = Vec::new();
        // Those before one that costs too much stay.
        let _ = self.answer(job, &mut answers);
        answers
    }

    fn answer(&mut self, job: &Job<'_>, answers: &mut Vec<(u32, Vec<Call>)>) -> Option<()> {
        // After a stop every job is passed over.
        self.work.take(STEPS_PER_JOB)?;
        let addresses = Addresses::new(job.addresses.clone());
        let unit = job.unit;
        let bytes = unit
            .root
            .line_program
            .and_then(|at| lines::program_bytes(&self.dwarf.lines, at, self.work));
        let program =
            bytes.as_ref().and_then(|bytes| Program::read(bytes, unit.encoding, self.work));
        let header = program.as_ref().map(Program::header);
        let rows = header.map(|header| lines::rows(header, &addresses, self.work));
        let (functions, names) = self.functions(unit, &addresses);
        let mut files: FxHashMap<u64, Option<Arc<str>>> = FxHashMap::default();
        let mut file = |index: u64| {
            let header = header?;
            files.entry(index).or_insert_with(|| self.names.path(unit, header, index)).clone()
        };
        for (at, &index) in job.indexes.iter().enumerate() {
            let mut row = rows.as_ref().and_then(|rows| rows.get(at).copied().flatten());
            let mut calls = Vec::new();
            for (link_at, link) in functions.chain(at) {
                self.work.take(1)?;
                self.answers.grow(CALL_BYTES)?;
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
        Some(())
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
    let bytes = work.and_then(|()| dwarf.info.read(unit.offset, unit.len));
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
