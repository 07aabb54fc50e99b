//! Addresses of many images: small ones at the same time, each large one with all threads.

use crate::dwarf::Effort;
use crate::lookup::Reason;
use crate::symbolizer::{ImageAnswer, ImageQuery, Symbolizer};
use stackpulse_spool::ImageKind;

/// The addresses of one image.
#[derive(Clone, Debug)]
pub struct Question {
    /// The image.
    pub image: ImageQuery,
    /// What is asked of it; the addresses mean what the image's kind says.
    pub addresses: Vec<u64>,
}

/// How far a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Questions with an answer.
    pub done: usize,
    /// All questions.
    pub of: usize,
}

impl Symbolizer {
    /// Answers all questions, in their order. Images are read at the same time as far as threads and memory allow.
    /// `progress` is called after each, on the calling thread.
    pub fn answer_all(
        &mut self,
        questions: &[Question],
        mut progress: impl FnMut(Progress),
    ) -> Vec<ImageAnswer> {
        let mut answers: Vec<Option<ImageAnswer>> = vec![None; questions.len()];
        let mut done = 0;
        let mut take = |answers: &mut Vec<Option<ImageAnswer>>, at: usize, answer| {
            answers[at] = Some(answer);
            done += 1;
            progress(Progress { done, of: questions.len() });
        };
        let all = self.effort();
        if all.threads > 1 && questions.len() > 1 {
            self.small_ones(questions, all, |at, answer| take(&mut answers, at, answer));
        }
        for (at, question) in questions.iter().enumerate() {
            if answers[at].is_none() {
                let answer = self.answer(&question.image, &question.addresses);
                take(&mut answers, at, answer);
            }
        }
        let none = || ImageAnswer { lookups: Vec::new(), files: Vec::new() };
        answers.into_iter().map(|answer| answer.unwrap_or_else(none)).collect()
    }

    /// Answers what one thread can do with its part of the memory.
    fn small_ones(
        &self,
        questions: &[Question],
        all: Effort,
        mut take: impl FnMut(usize, ImageAnswer),
    ) {
        let workers = all.threads.min(questions.len());
        let part = Effort { threads: 1, memory: all.memory / workers as u64, is_part: true };
        let (jobs, next) = crossbeam_channel::unbounded();
        for (at, question) in questions.iter().enumerate() {
            if matches!(question.image.kind, ImageKind::Elf | ImageKind::File) {
                // The receiver is alive.
                let _ = jobs.send((at, question));
            }
        }
        drop(jobs);
        let (answers, answered) = crossbeam_channel::unbounded();
        std::thread::scope(|scope| {
            for _ in 0..workers {
                let (next, answers) = (next.clone(), answers.clone());
                scope.spawn(move || {
                    for (at, question) in next {
                        let Question { image, addresses } = question;
                        let answer = match self.in_files(image, addresses, part) {
                            Ok(answer) => answer,
                            Err(reason) => Some(ImageAnswer::nameless(addresses.len(), reason)),
                        };
                        // The receiver lives as long as the threads.
                        let _ = answers.send(answer.map(|answer| (at, answer)));
                    }
                });
            }
            drop(answers);
            for (at, answer) in answered.into_iter().flatten() {
                take(at, answer);
            }
        });
    }
}

impl ImageAnswer {
    /// No name for any of so many addresses, for one reason.
    pub(crate) fn nameless(addresses: usize, reason: Reason) -> Self {
        Self { lookups: vec![crate::Lookup::unresolved(reason); addresses], files: Vec::new() }
    }
}
