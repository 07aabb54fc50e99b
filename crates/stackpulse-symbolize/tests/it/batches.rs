//! Many images at once.

use crate::harness::{Scene, has_tools, text_addresses};
use stackpulse_spool::ImageKind;
use stackpulse_symbolize::{
    ImageQuery, Lookup, Progress, Question, Reason, Symbolizer, SymbolizerOptions,
};

/// Questions to programs of all kinds, in an order that mixes them.
fn questions(scene: &Scene) -> Vec<Question> {
    scene.shell(
        "gcc -O2 -g $SRC/work.c -o small && gcc -O2 -g -gsplit-dwarf $SRC/work.c -o split && \
         gcc -O2 -g -gz=zlib $SRC/work.c -o packed && strip small -o stripped && \
         g++ -O1 -g $SRC/shapes.cpp -o large && echo text > none",
    );
    let mut questions = Vec::new();
    for name in ["split", "none", "small", "stripped", "large", "gone", "packed", "small"] {
        let has_text = !matches!(name, "none" | "gone");
        let addresses =
            if has_text { text_addresses(&scene.path(name), 300) } else { vec![1, 2, 3] };
        questions.push(Question { image: ImageQuery::file(scene.path(name)), addresses });
    }
    let code = ImageQuery { kind: ImageKind::Generated, ..ImageQuery::file("") };
    questions.push(Question { image: code, addresses: vec![7] });
    questions
}

fn has_line(lookup: &Lookup) -> bool {
    matches!(lookup, Lookup::Resolved { calls, .. } if calls.iter().any(|call| call.line.is_some()))
}

fn options(threads: usize, max_memory_bytes: u64) -> SymbolizerOptions {
    SymbolizerOptions { threads, max_memory_bytes, ..SymbolizerOptions::default() }
}

#[test]
fn a_batch_answers_as_one_question_after_another() {
    if !has_tools(&["gcc", "g++", "strip"]) {
        return;
    }
    let scene = Scene::new();
    let questions = questions(&scene);
    // The others are too little for the largest program, beside another and alone.
    let mut most_lines = None;
    for memory in [1 << 30, 100 << 10, 0] {
        let mut one = Symbolizer::new(options(1, memory));
        let expected: Vec<_> =
            questions.iter().map(|it| one.answer(&it.image, &it.addresses)).collect();
        let lines = expected.iter().flat_map(|it| &it.lookups).filter(|it| has_line(it)).count();
        let most = *most_lines.get_or_insert(lines);
        assert!(memory == 1 << 30 || lines < most, "{memory} bytes are enough");
        for threads in [1, 2, 5] {
            let mut told = Vec::new();
            let mut symbolizer = Symbolizer::new(options(threads, memory));
            let found = symbolizer.answer_all(&questions, |progress| told.push(progress));
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found.lookups, expected.lookups, "{threads} threads, {memory} bytes");
                assert_eq!(found.files, expected.files);
            }
            let of = questions.len();
            assert_eq!(told, (1..=of).map(|done| Progress { done, of }).collect::<Vec<_>>());
        }
    }
}

#[test]
fn each_question_of_a_batch_has_its_own_reason() {
    if !has_tools(&["gcc", "g++", "strip"]) {
        return;
    }
    let scene = Scene::new();
    let answers = Symbolizer::new(options(2, 1 << 30)).answer_all(&questions(&scene), |_| ());
    let reasons: Vec<Option<Reason>> = [1, 3, 5, 8]
        .iter()
        .map(|&at| match answers[at].lookups[0] {
            Lookup::Unresolved { reason, .. } => Some(reason),
            Lookup::Resolved { .. } => None,
        })
        .collect();
    let expected = [Reason::Damaged, Reason::Stripped, Reason::NoFile, Reason::UnknownCode];
    assert_eq!(reasons, expected.map(Some));
}
