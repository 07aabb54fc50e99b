//! Addresses of many images: small ones at the same time, each large one with all threads.

use crate::allowance::{Allowance, Limits};
use crate::answer::ImageAnswer;
use crate::image::Effort;
use crate::symbolizer::{ImageQuery, Symbolizer};
use stackpulse_spool::ImageKind;
use std::sync::Arc;

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
    /// Answers all questions, in their order. Images are read at the same time as far as threads and memory allow; where all
    /// of them together cost too much, it is the last that have no names. `progress` is called after each, on the calling
    /// thread.
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
        let limits = self.limits();
        if self.threads() > 1 && questions.len() > 1 {
            self.small_ones(questions, &limits, |at, answer| take(&mut answers, at, answer));
        }
        for (at, Question { image, addresses }) in questions.iter().enumerate() {
            if answers[at].is_none() {
                let answer = match image.kind {
                    ImageKind::Elf | ImageKind::File => {
                        self.answer_within(image, addresses, &limits)
                    }
                    _ => self.answer(image, addresses),
                };
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
        limits: &Arc<Limits>,
        mut take: impl FnMut(usize, ImageAnswer),
    ) {
        let workers = self.threads().min(questions.len());
        let memory = self.file_memory() / workers as u64;
        let part =
            || Effort { threads: 1, is_part: true, allowance: Allowance::new(memory, limits) };
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
                let (next, answers, part) = (next.clone(), answers.clone(), &part);
                scope.spawn(move || {
                    for (at, question) in next {
                        let Question { image, addresses } = question;
                        let answer = match self.in_files(image, addresses, &part()) {
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
