//! `report`: the hottest functions and the call tree, as text or JSON.

use crate::analysis::{self, Count};
use crate::args::{GroupBy, ReportArgs, TreeKind};
use crate::failure::Failure;
use crate::open::{self, Opened};
use crate::render::{Row, Screen, Table, plural, wrap};
use crate::select;
use rustc_hash::FxHashMap;
use stackpulse_export::{Call, Function, FunctionId, Mode, Profile};
use std::io::{self, BufWriter, Write};

pub(crate) fn run(args: &ReportArgs) -> Result<(), Failure> {
    let opened = open::profile(&args.file, &args.select)?;
    let printed = if args.json {
        print_json(&opened.profile, BufWriter::new(io::stdout().lock()))
    } else {
        print_text(&opened, args, &mut Screen::open(!args.no_pager))
    };
    closed_pipe_is_fine(printed)
}

/// Prints the text form.
fn print_text(opened: &Opened, args: &ReportArgs, out: &mut Screen) -> io::Result<()> {
    let profile = &opened.profile;
    let table =
        Table { width: out.width, samples: profile.stacks.total, is_coloured: out.is_coloured };
    let mut say =
        |text: &str| wrap(text, table.width).iter().try_for_each(|line| writeln!(out, "{line}"));
    for note in &opened.notes {
        say(&format!("note: {note}"))?;
    }
    if table.samples == 0 {
        say(&format!("0 samples because {}", opened.why_none()))?;
        return out.flush();
    }
    say(&match profile.stacks.left_out {
        0 => plural(table.samples, "sample"),
        left_out => {
            let all = plural(table.samples + left_out, "sample");
            format!("{} of {all} pass the filters", table.samples)
        }
    })?;
    writeln!(out)?;
    table.print_rows(heading(args.by), &rows(profile, args), out)?;
    let least = select::least_samples(percent_limit(args), table.samples);
    let tree = match args.tree {
        TreeKind::None => return out.flush(),
        TreeKind::Callees => analysis::callee_tree(profile),
        TreeKind::Callers => analysis::caller_tree(profile, least),
    };
    writeln!(out)?;
    table.print_tree_heading(tree_heading(args.tree), out)?;
    for row in tree.rows(least) {
        let function = profile.function(row.function);
        let row_text = Row {
            own: row.own,
            total: row.total,
            label: label(function),
            module: module_in_tree(profile, row.function),
        };
        table.print_tree_row(row.depth, &row_text, out)?;
    }
    out.flush()
}

fn heading(by: GroupBy) -> &'static str {
    match by {
        GroupBy::Function => "function",
        GroupBy::Module => "module",
        GroupBy::Thread => "thread",
        GroupBy::Process => "process",
    }
}

fn tree_heading(kind: TreeKind) -> &'static str {
    match kind {
        TreeKind::Callers => "callers of the hottest functions",
        _ => "call tree",
    }
}

/// A function's name as the report shows it: kernel functions are marked.
fn label(function: &Function) -> String {
    let mut label = function.label();
    if function.mode == Mode::Kernel {
        label.push_str(" [k]");
    }
    label
}

/// The tree names the modules of user functions; kernel functions are marked, and unknown ones name theirs themselves.
fn module_in_tree(profile: &Profile, id: FunctionId) -> String {
    let function = profile.function(id);
    if function.name.is_some() && function.mode == Mode::User {
        function.module.to_string()
    } else {
        String::new()
    }
}

fn rows(profile: &Profile, args: &ReportArgs) -> Vec<Row> {
    let mut rows = match args.by {
        GroupBy::Function if args.lines => line_rows(profile),
        GroupBy::Function => function_rows(profile),
        GroupBy::Module => module_rows(profile),
        GroupBy::Thread => actor_rows(profile, |thread, comm| {
            let tid = profile.stacks.threads[thread as usize].tid;
            format!("{} [{tid}]", comm_text(profile, comm))
        }),
        GroupBy::Process => actor_rows(profile, |thread, _| process_label(profile, thread)),
    };
    let least = select::least_samples(percent_limit(args), profile.stacks.total);
    rows.retain(|row| row.own.max(row.total) >= least);
    rows.sort_by(|a, b| {
        (b.own, b.total, &a.label, &a.module).cmp(&(a.own, a.total, &b.label, &b.module))
    });
    rows
}

fn function_rows(profile: &Profile) -> Vec<Row> {
    function_counts(profile)
        .into_iter()
        .map(|(function, count)| Row {
            own: count.own,
            total: count.total,
            label: label(function),
            module: function.module.to_string(),
        })
        .collect()
}

/// Rows of source lines: the line that runs, or that calls what runs.
fn line_rows(profile: &Profile) -> Vec<Row> {
    let mut places: Vec<&Call> = Vec::new();
    let mut index: FxHashMap<Line<'_>, usize> = FxHashMap::default();
    for call in profile.calls.iter().flatten() {
        index.entry(line_of(call)).or_insert_with(|| {
            places.push(call);
            places.len() - 1
        });
    }
    let key = |call: &Call| index.get(&line_of(call)).copied().unwrap_or_default();
    let counts = analysis::totals(profile, places.len(), key);
    let with_counts = places
        .iter()
        .zip(counts)
        .map(|(call, count)| (call, profile.function(call.function), count));
    with_counts
        .filter(|(_, function, count)| function.mode != Mode::Marker && count.total > 0)
        .map(|(call, function, count)| {
            let file = call.file.as_deref().and_then(|path| path.rsplit('/').next());
            let place = match (file, call.line) {
                (Some(file), Some(line)) => format!("{file}:{line}"),
                (Some(file), None) => file.to_owned(),
                (None, _) => function.module.to_string(),
            };
            Row { own: count.own, total: count.total, label: label(function), module: place }
        })
        .collect()
}

/// What tells source lines apart.
type Line<'a> = (FunctionId, Option<&'a str>, Option<u32>);

fn line_of(call: &Call) -> Line<'_> {
    (call.function, call.file.as_deref(), call.line)
}

/// Functions in the order of their first appearance, with their counts; markers left out.
fn function_counts(profile: &Profile) -> Vec<(&Function, Count)> {
    let keys = profile.functions.len();
    let counts = analysis::totals(profile, keys, |call| call.function.0 as usize);
    profile
        .functions
        .iter()
        .zip(counts)
        .filter(|(function, count)| function.mode != Mode::Marker && count.total > 0)
        .collect()
}

fn module_rows(profile: &Profile) -> Vec<Row> {
    let mut modules: Vec<&str> =
        profile.functions.iter().map(|function| function.module.as_ref()).collect();
    modules.sort_unstable();
    modules.dedup();
    let module_of: Vec<usize> = profile
        .functions
        .iter()
        .map(|function| modules.binary_search(&function.module.as_ref()).unwrap_or_default())
        .collect();
    let counts =
        analysis::totals(profile, modules.len(), |call| module_of[call.function.0 as usize]);
    modules
        .iter()
        .zip(counts)
        .filter(|(module, _)| !module.is_empty())
        .map(|(module, count)| Row {
            own: count.own,
            total: count.total,
            label: (*module).to_owned(),
            module: String::new(),
        })
        .collect()
}

/// Rows of threads or processes: self and total are the same.
fn actor_rows(profile: &Profile, label: impl Fn(u32, u32) -> String) -> Vec<Row> {
    let mut samples = std::collections::BTreeMap::<String, u64>::new();
    for (stack, &count) in &profile.stacks.counts {
        *samples.entry(label(stack.actor.thread, stack.actor.comm)).or_default() += count;
    }
    samples
        .into_iter()
        .map(|(label, count)| Row { own: count, total: count, label, module: String::new() })
        .collect()
}

fn process_label(profile: &Profile, thread: u32) -> String {
    let process =
        &profile.stacks.processes[profile.stacks.threads[thread as usize].process as usize];
    let arguments = String::from_utf8_lossy(&process.command_line).replace('\0', " ");
    format!("{} [{}] {}", String::from_utf8_lossy(&process.comm), process.pid, arguments.trim_end())
}

fn comm_text(profile: &Profile, comm: u32) -> String {
    String::from_utf8_lossy(&profile.stacks.comms[comm as usize]).into_owned()
}

/// What is left out of tables and trees, in percent.
fn percent_limit(args: &ReportArgs) -> f64 {
    args.select.percent_limit.unwrap_or(0.5)
}

fn print_json(profile: &Profile, mut out: impl Write) -> io::Result<()> {
    let mut functions = function_counts(profile);
    functions.sort_by(|(a, a_count), (b, b_count)| {
        (b_count.own, b_count.total, &a.name, &a.module, a.address).cmp(&(
            a_count.own,
            a_count.total,
            &b.name,
            &b.module,
            b.address,
        ))
    });
    let functions: Vec<_> = functions
        .into_iter()
        .map(|(function, count)| {
            serde_json::json!({
                "name": function.name.as_deref().unwrap_or("[unknown]"),
                "module": &*function.module,
                "address": function.address,
                "kernel": function.mode == Mode::Kernel,
                "self": count.own,
                "total": count.total,
            })
        })
        .collect();
    let report = serde_json::json!({
        "total_samples": profile.stacks.total,
        "functions": functions,
        "processes": processes_json(profile),
    });
    writeln!(out, "{report:#}")?;
    out.flush()
}

/// Each process's samples and its own functions.
fn processes_json(profile: &Profile) -> Vec<serde_json::Value> {
    let stacks = &profile.stacks;
    let mut own =
        vec![std::collections::BTreeMap::<FunctionId, u64>::new(); stacks.processes.len()];
    for (stack, &count) in &stacks.counts {
        let process = stacks.threads[stack.actor.thread as usize].process as usize;
        let leaf = &profile.calls[stack.leaf as usize][0];
        *own[process].entry(leaf.function).or_default() += count;
    }
    let threads = |process: usize| {
        let of_process =
            stacks.threads.iter().filter(move |thread| thread.process as usize == process);
        of_process.map(|thread| thread.tid).collect::<Vec<_>>()
    };
    stacks
        .processes
        .iter()
        .zip(own)
        .enumerate()
        .map(|(at, (process, own))| {
            let mut hottest: Vec<_> = own.iter().collect();
            hottest.sort_by_key(|&(_, &count)| std::cmp::Reverse(count));
            serde_json::json!({
                "pid": process.pid,
                "generation": process.generation,
                "comm": String::from_utf8_lossy(&process.comm),
                "samples": own.values().sum::<u64>(),
                "threads": threads(at),
                "self": hottest
                    .iter()
                    .take(10)
                    .map(|&(&id, &count)| {
                        serde_json::json!({"name": profile.function(id).label(), "self": count})
                    })
                    .collect::<Vec<_>>(),
            })
        })
        .collect()
}

/// A reader that has seen enough, such as `head`, is no failure.
pub(crate) fn closed_pipe_is_fine(printed: io::Result<()>) -> Result<(), Failure> {
    match printed {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(Failure::from),
    }
}
