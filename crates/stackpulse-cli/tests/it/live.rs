//! Names, order and shares of programs that are known.

use crate::harness::{
    Scene, has_chain, has_tool, info, percent, run, stackpulse, stacks, stderr, stdout,
};
use std::process::Command;

#[test]
fn known_shares_and_whole_chains_come_back() {
    let scene = Scene::new();
    let program = scene.compile("shares.c", &[]);
    let spool = scene.record(&["--no-kernel"], &program, &["2"]);
    let stacks = stacks(&spool);
    for (leaf, middle, share) in [
        ("leaf_sixty", "middle_sixty", 60.0),
        ("leaf_thirty", "middle_thirty", 30.0),
        ("leaf_ten", "middle_ten", 10.0),
    ] {
        let found = percent(&stacks, |stack| has_chain(stack, &["main", "outer", middle, leaf]));
        assert!((found - share).abs() < 3.0, "{leaf}: {found} % instead of {share} %");
        let anywhere = percent(&stacks, |stack| stack.iter().any(|frame| frame == leaf));
        assert!(
            (found - anywhere).abs() < f64::EPSILON,
            "{leaf} under a chain that does not exist"
        );
    }
    let whole = percent(&stacks, |stack| stack[1] == "_start");
    assert!(whole > 99.0, "{whole} % of stacks reach the root");
    let facts = info(&spool);
    assert_eq!(facts["state"], "finished");
    assert_eq!(facts["rate_hz"], 997);
    assert!(facts["samples"].as_u64() > Some(500), "{facts}");
    for key in ["lost", "truncated", "duration_ns", "event", "bytes", "processes", "gaps"] {
        assert!(!facts[key].is_null(), "{key} is missing");
    }
}

/// Every linker puts read-only data and text into the file in its own way, and the last page of the one may be the
/// first of the other: a wrong choice of segment shifts every address by a page.
#[test]
fn images_of_every_linker_and_kind_are_unwound_and_named() {
    let scene = Scene::new();
    let kinds: [&[&str]; 14] = [
        &["-fuse-ld=bfd"],
        &["-fuse-ld=bfd", "-Wl,-z,noseparate-code"],
        &["-fuse-ld=gold"],
        &["-fuse-ld=lld", "-Wl,-z,separate-code"],
        &["-fuse-ld=lld", "-static-pie"],
        &["-fuse-ld=mold", "-no-pie"],
        &["-static", "-Wl,-Ttext-segment=0x40000000"],
        // Only `.debug_frame` tells of the program's own functions, and it is compressed.
        &["-fno-asynchronous-unwind-tables", "-gz=zlib"],
        &["-fuse-ld=lld"],
        &["-fuse-ld=mold"],
        &["-no-pie"],
        &["-static"],
        &["-static-pie"],
        &["-fuse-ld=lld", "-Wl,--no-rosegment"],
    ];
    for flags in kinds {
        let linker = flags[0]
            .strip_prefix("-fuse-ld=")
            .map(|name| if name == "mold" { "mold".to_owned() } else { format!("ld.{name}") });
        if linker.is_some_and(|linker| !has_tool(&linker)) {
            continue;
        }
        let program = scene.compile("shares.c", flags);
        let spool = scene.record(&["--no-kernel"], &program, &["0.5"]);
        let stacks = stacks(&spool);
        let right = percent(&stacks, |stack| {
            has_chain(stack, &["main", "outer", "middle_sixty", "leaf_sixty"])
                || has_chain(stack, &["main", "outer", "middle_thirty", "leaf_thirty"])
                || has_chain(stack, &["main", "outer", "middle_ten", "leaf_ten"])
        });
        assert!(right > 97.0, "{flags:?}: {right} % of stacks show a chain of the program");
    }
}

#[test]
fn cpp_names_are_demangled_and_inlined_calls_shown_with_their_threads() {
    if !has_tool("c++") {
        return;
    }
    let scene = Scene::new();
    let program = scene.compile("threads.cpp", &[]);
    let spool = scene.record(&["--no-kernel"], &program, &["0.7"]);
    let stacks = stacks(&spool);
    let burner = "work::Burner<unsigned long>::burn";
    let inlined = percent(&stacks, |stack| {
        stack.windows(2).any(|pair| pair[0].starts_with(burner) && pair[1].contains("inlined_step"))
    });
    assert!(inlined > 80.0, "{inlined} % show the inlined call");
    // The assembler describes clone3 under each of its names: clone3, __clone3 and __GI___clone3.
    let is_root = |name: &str| name.trim_start_matches('_') == "clone3" || name == "_start";
    let rooted = percent(&stacks, |stack| is_root(&stack[1]));
    assert!(rooted > 98.0, "{rooted} % reach the thread's start");
    let json = run(["report", "--json", spool.to_str().unwrap()]);
    let report: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert!(report["processes"][0]["threads"].as_array().unwrap().len() >= 2, "{report}");
    assert_eq!(report["total_samples"], info(&spool)["samples"]);
}

#[test]
fn rust_names_lose_their_hash_and_show_inlined_calls() {
    if !has_tool("rustc") {
        return;
    }
    let scene = Scene::new();
    let program = scene.compile("nested.rs", &[]);
    let spool = scene.record(&["--no-kernel"], &program, &["0.7"]);
    let stacks = stacks(&spool);
    let found = percent(&stacks, |stack| {
        let at = |name: &str| stack.iter().position(|frame| frame == name);
        at("nested::rust_outer") < at("nested::rust_leaf")
            && at("nested::rust_leaf") < at("nested::work::inlined_sum")
    });
    assert!(found > 90.0, "{found} % show the chain");
}

#[test]
fn children_are_followed_through_fork_and_exec() {
    let scene = Scene::new();
    let program = scene.compile("children.c", &[]);
    let spool = scene.record(&["--no-kernel"], &program, &["10"]);
    let stacks = stacks(&spool);
    let forked = percent(&stacks, |stack| {
        stack[0] == "children" && has_chain(stack, &["main", "burn_after_fork"])
    });
    let execed = percent(&stacks, |stack| {
        stack[0] == "exe" && has_chain(stack, &["main", "burn_after_exec"])
    });
    assert!(forked > 40.0 && execed > 40.0, "after fork {forked} %, after exec {execed} %");
    assert_eq!(
        percent(&stacks, |stack| stack[0] == "children"
            && stack.iter().any(|f| f == "burn_after_exec")),
        0.0
    );
    let processes = info(&spool)["processes"].as_array().unwrap().len();
    assert_eq!(processes, 11);
    let alone = scene.record(&["--no-kernel", "--no-inherit"], &program, &["4"]);
    assert_eq!(info(&alone)["processes"].as_array().unwrap().len(), 1);
}

#[test]
fn a_running_process_is_attached_to_and_goes_on() {
    let scene = Scene::new();
    let program = scene.compile("shares.c", &[]);
    for mode in ["--stop", "--no-stop"] {
        let mut target = Command::new(&program).arg("1.5").spawn().unwrap();
        let spool = scene.path("attached.spool");
        let pid = target.id().to_string();
        let output = stackpulse()
            .args(["record", "--no-kernel", mode, "-p", &pid, "-o"])
            .arg(&spool)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(target.wait().unwrap().success());
        let right = percent(&stacks(&spool), |stack| stack.iter().any(|f| f.starts_with("leaf_")));
        assert!(right > 90.0, "{mode}: {right} %");
    }
}

#[test]
fn stripped_programs_are_named_from_their_debug_files() {
    if !has_tool("objcopy") {
        return;
    }
    let scene = Scene::new();
    let program = scene.compile("shares.c", &["-Wl,--build-id"]);
    let debug = scene.path("shares.debug");
    let tool = |words: &[&str]| {
        let output = Command::new("objcopy").args(words).output().expect("run objcopy");
        assert!(output.status.success(), "{}", stderr(&output));
    };
    let (program_text, debug_text) = (program.to_str().unwrap(), debug.to_str().unwrap());
    tool(&["--only-keep-debug", program_text, debug_text]);
    tool(&["--strip-all", program_text]);
    let link = format!("--add-gnu-debuglink={debug_text}");
    tool(&[&link, program_text]);
    let has_leaf = |stack: &[String]| stack.iter().any(|frame| frame == "leaf_sixty");

    let by_link = scene.record(&["--no-kernel"], &program, &["0.3"]);
    assert!(percent(&stacks(&by_link), has_leaf) > 40.0);

    std::fs::remove_file(&debug).unwrap();
    let bare = scene.record(&["--no-kernel"], &program, &["0.3"]);
    let bare = stacks(&bare);
    assert_eq!(percent(&bare, has_leaf), 0.0);
    let unknown =
        |stack: &[String]| stack.iter().any(|frame| frame.starts_with("[unknown] shares+0x"));
    assert!(percent(&bare, unknown) > 90.0, "{bare:?}");
}

#[test]
fn a_spool_keeps_its_names_when_the_program_is_gone() {
    let scene = Scene::new();
    let program = scene.compile("shares.c", &[]);
    let spool = scene.record(&["--no-kernel"], &program, &["0.5"]);
    let before = run(["report", spool.to_str().unwrap()]);
    std::fs::remove_file(&program).unwrap();
    let after = run(["report", spool.to_str().unwrap()]);
    assert!(stdout(&before).contains("leaf_sixty"));
    assert_eq!(stdout(&before), stdout(&after));
}

#[test]
fn reports_by_thread_process_module_and_callers_name_what_is_there() {
    let scene = Scene::new();
    let program = scene.compile("shares.c", &[]);
    let spool = scene.record(&[], &program, &["0.5"]);
    let spool = spool.to_str().unwrap();
    for (options, expected) in [
        (["--by", "module"], "shares"),
        (["--by", "process"], "shares ["),
        (["--by", "thread"], "shares ["),
        (["--tree", "callers"], "middle_sixty"),
        (["--lines", "--tree=none"], "shares.c:"),
    ] {
        let output = run(["report", options[0], options[1], spool]);
        assert!(stdout(&output).contains(expected), "{options:?}: {}", stdout(&output));
    }
}

#[test]
fn the_demo_ends_in_a_report_of_its_own_functions() {
    let output = run(["demo", "--duration", "1s"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let report = stdout(&output);
    // The table is sorted by self: the workload's three functions come first, in the order of their shares.
    let rows: Vec<&str> =
        report.lines().skip_while(|line| !line.contains("function")).skip(1).collect();
    for (row, name) in rows.iter().zip(["sum_by_trial_division", "sum_by_sieve", "sum_by_counting"])
    {
        assert!(row.contains(name), "{report}");
    }
    assert!(!report.contains("truncated"), "its frames are small: {report}");
    let told = stderr(&output);
    let spool =
        told.split_whitespace().find(|word| word.ends_with(".spool")).expect("the spool is named");
    std::fs::remove_file(spool).unwrap();
}
