//! Programs compiled for the tests, recordings of them, and what their spools say.

use object::{Object, ObjectSymbol};
use stackpulse_record::process::{Launch, LaunchedProcess, SuspendedLaunchedProcess};
use stackpulse_record::{AttachMode, Recorder, RecorderOptions, SampleRate, Summary};
use stackpulse_spool::{Frame, ImageKind, Record, Replay, State, Tables, text};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A directory with the programs of a test.
pub(crate) struct Scene(tempfile::TempDir);

impl Scene {
    /// Makes one that every user may enter, with the program `life` in it.
    pub(crate) fn new() -> Self {
        let scene = Self(tempfile::tempdir().unwrap());
        let everyone = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(scene.0.path(), everyone).unwrap();
        scene.compile("life.c", "life", &["-pthread"]);
        scene
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn life(&self) -> PathBuf {
        self.path("life")
    }

    /// Compiles a shared object whose one function has this name.
    pub(crate) fn shared_object(&self, function: &str) -> PathBuf {
        let define = format!("-DFUNCTION={function}");
        self.compile("library.c", &format!("lib{function}.so"), &["-shared", "-fPIC", &define]);
        self.path(&format!("lib{function}.so"))
    }

    fn compile(&self, source: &str, name: &str, flags: &[&str]) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/targets").join(source);
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"]).args(flags);
        let compiled = compiler.arg("-o").arg(self.path(name)).arg(source).output().unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    }

    /// Records a mode of `life` from its exec until its last process has ended.
    pub(crate) fn record(&self, words: &[&str]) -> Recording {
        self.record_with(words, &options())
    }

    pub(crate) fn record_with(&self, words: &[&str], options: &RecorderOptions) -> Recording {
        let (mut recorder, mut child) = self.launch(words, options);
        while recorder.active_process_count().unwrap() > 0 {
            recorder.poll(Duration::from_millis(50)).unwrap();
        }
        assert!(child.wait().unwrap().success());
        let (summary, bytes) = recorder.finish().unwrap();
        self.recording(summary, &bytes)
    }

    /// Starts a mode of `life` that is recorded into memory.
    pub(crate) fn launch(
        &self,
        words: &[&str],
        options: &RecorderOptions,
    ) -> (Recorder<Vec<u8>>, LaunchedProcess) {
        let suspended = SuspendedLaunchedProcess::launch(&Launch {
            program: self.life().into(),
            arguments: words.iter().map(Into::into).collect(),
            ..Launch::default()
        })
        .unwrap();
        let pid = suspended.pid();
        let recorder =
            Recorder::attach_with_writer(pid, Vec::new(), AttachMode::OnExec, options).unwrap();
        (recorder, suspended.resume().unwrap())
    }

    /// What a spool says, with names from the scene's programs.
    pub(crate) fn recording(&self, summary: Summary, bytes: &[u8]) -> Recording {
        Recording::read(summary, bytes, &self.symbols())
    }

    fn symbols(&self) -> Symbols {
        let mut files = BTreeMap::new();
        for file in std::fs::read_dir(self.0.path()).unwrap() {
            let path = file.unwrap().path();
            let Ok(bytes) = std::fs::read(&path) else { continue };
            let Ok(elf) = object::File::parse(&bytes[..]) else { continue };
            let functions =
                elf.symbols().filter(|symbol| symbol.size() > 0 && symbol.is_definition());
            let functions = functions.filter_map(|symbol| {
                Some((symbol.address(), symbol.size(), symbol.name().ok()?.to_owned()))
            });
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            files.insert(name, functions.collect());
        }
        Symbols(files)
    }
}

/// Functions of programs by file name: first address, size, name.
struct Symbols(BTreeMap<String, Vec<(u64, u64, String)>>);

impl Symbols {
    /// A program that was copied, replaced or deleted is still the program.
    fn name(&self, path: &str, address: u64) -> Option<String> {
        let file = Path::new(path).file_name()?.to_str()?;
        let file = if file == "inner" { "life" } else { file };
        let functions = self.0.get(file).or_else(|| self.0.get("life.kept"))?;
        let at =
            functions.iter().find(|(start, size, _)| (*start..start + size).contains(&address));
        at.map(|(_, _, name)| name.clone())
    }
}

/// A sample, with names where the scene has them.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) pid: u32,
    pub(crate) generation: u32,
    /// Innermost first; what has no name here is told by its image.
    pub(crate) frames: Vec<String>,
    pub(crate) time_ns: u64,
}

/// What a spool says.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) summary: Summary,
    pub(crate) samples: Vec<Seen>,
    pub(crate) state: State,
    /// Pids of all processes, one for each generation.
    pub(crate) processes: Vec<u32>,
    pub(crate) threads: u64,
    /// CPUs of samples, in order.
    pub(crate) cpus: Vec<u32>,
    pub(crate) execs: u64,
    pub(crate) forks: u64,
    pub(crate) lost: u64,
    /// Every gap, lost record and pause as text.
    pub(crate) marks: Vec<String>,
    pub(crate) is_sound: bool,
}

impl Recording {
    fn read(summary: Summary, bytes: &[u8], symbols: &Symbols) -> Self {
        let mut replay = Replay::open(bytes).unwrap();
        let mut read = Self {
            summary,
            samples: Vec::new(),
            state: State::Torn { offset: 0 },
            processes: Vec::new(),
            threads: 0,
            cpus: Vec::new(),
            execs: 0,
            forks: 0,
            lost: 0,
            marks: Vec::new(),
            is_sound: true,
        };
        while let Some((record, tables)) = replay.next_with_tables().unwrap() {
            match record {
                Record::Process(process) => read.processes.push(process.pid),
                Record::Thread(_) => read.threads += 1,
                Record::Exec { .. } => read.execs += 1,
                Record::Fork { .. } => read.forks += 1,
                Record::Lost { events, .. } => {
                    read.lost += events;
                    read.marks.push(text::line(&record).to_string());
                }
                Record::Gap { .. } | Record::Pause { .. } => {
                    read.marks.push(text::line(&record).to_string());
                }
                Record::Sample(sample) => {
                    if !read.cpus.contains(&sample.cpu) {
                        read.cpus.push(sample.cpu);
                    }
                    let thread = tables.thread(sample.thread).unwrap();
                    let process = tables.process(thread.process).unwrap();
                    let frames =
                        std::iter::once(sample.leaf).chain(tables.frames_of(sample.callers));
                    let frames =
                        frames.map(|frame| name(tables.frame(frame).unwrap(), tables, symbols));
                    read.samples.push(Seen {
                        pid: process.pid,
                        generation: process.generation,
                        frames: frames.collect(),
                        time_ns: sample.time_ns,
                    });
                }
                _ => {}
            }
        }
        read.state = replay.state();
        read.is_sound = replay.damage().is_empty() && replay.left_out() == 0;
        read
    }

    /// How many samples have a frame of this name.
    pub(crate) fn within(&self, name: &str) -> usize {
        self.samples.iter().filter(|seen| seen.frames.iter().any(|frame| frame == name)).count()
    }

    /// The pids of the samples that have a frame of this name.
    pub(crate) fn pids_within(&self, name: &str) -> Vec<u32> {
        let within =
            self.samples.iter().filter(|seen| seen.frames.iter().any(|frame| frame == name));
        let mut pids: Vec<u32> = within.map(|seen| seen.pid).collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// All samples whose innermost frame is `work` show who called it, and who called that.
    pub(crate) fn assert_whole(&self) {
        let work = |seen: &&Seen| seen.frames.iter().any(|frame| frame == "work");
        let (whole, cut): (Vec<&Seen>, Vec<&Seen>) =
            self.samples.iter().filter(work).partition(|seen| {
                let mut after = seen.frames.iter().skip_while(|frame| *frame != "work").skip(1);
                after.next().is_some_and(|caller| caller.starts_with("in_") || caller == "main")
            });
        assert!(
            cut.len() * 50 <= whole.len(),
            "{} of {}: {:?}",
            cut.len(),
            whole.len(),
            cut.first()
        );
    }
}

fn name(frame: Frame, tables: &Tables, symbols: &Symbols) -> String {
    match frame {
        Frame::Code { image, address } => {
            let image = tables.image(image).unwrap();
            let path = String::from_utf8_lossy(image.path);
            let is_elf = image.kind == ImageKind::Elf;
            is_elf.then(|| symbols.name(&path, address)).flatten().unwrap_or_else(|| {
                match image.kind {
                    ImageKind::Unknown => format!("[unknown {address:#x}]"),
                    _ => format!("[{path}]"),
                }
            })
        }
        Frame::Truncated(reason) => format!("[truncated {reason:?}]"),
        Frame::Joined => "[joined]".to_owned(),
    }
}

/// 997 samples a second, children followed.
pub(crate) fn options() -> RecorderOptions {
    let mut options = RecorderOptions::default();
    options.sample_rate = SampleRate::hz(997).unwrap();
    options.inherit_children = true;
    options
}

/// A program of a scene that runs, listens and answers; killed when dropped.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn start(scene: &Scene, words: &[&str]) -> Self {
        let mut command = Command::new(scene.life());
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Reads the next line it says.
    pub(crate) fn line(&mut self) -> String {
        // One byte at a time would do as well: it says a line and waits.
        let mut line = String::new();
        BufReader::new(self.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// Says a line, and returns the next one it says.
    pub(crate) fn ask(&mut self, line: &str) -> String {
        writeln!(self.0.stdin.as_mut().unwrap(), "{line}").unwrap();
        self.line()
    }

    /// Makes it do what the letter stands for, and waits until it is done.
    pub(crate) fn obey(&mut self, letter: &str, answer: &str) {
        assert_eq!(self.ask(letter), answer);
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.0), signal).unwrap();
    }

    /// Whether it has not ended.
    pub(crate) fn lives(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }

    pub(crate) fn end(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
