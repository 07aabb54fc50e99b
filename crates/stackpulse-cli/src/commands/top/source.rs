//! Where the samples of `top` come from: a spool that grows, written here or by another process.

use crate::args::{Rate, SelectArgs, TopArgs};
use crate::failure::Failure;
use crate::names::Namer;
use crate::{open, select};
use stackpulse_export::{Loader, Profile};
use stackpulse_record::{AttachMode, Recorder, RecorderOptions, SampleRate};
use stackpulse_spool::{ReadError, Record, State, SymbolTable, Tail};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Records taken in at once, so that keys are never waited for long.
const BATCH: usize = 200_000;

/// What the head of the screen tells.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Facts {
    pub(super) samples: u64,
    pub(super) lost: u64,
    pub(super) has_ended: bool,
}

/// A spool, and what has been read of it.
pub(super) struct Source {
    tail: Tail<File>,
    path: PathBuf,
    name: String,
    loader: Loader,
    boot_id: Vec<u8>,
    symbols: Option<SymbolTable>,
    namer: Option<Namer>,
    lost: u64,
    recorder: Option<Recorder<File>>,
}

impl Source {
    pub(super) fn open(args: &TopArgs) -> Result<Self, Failure> {
        match (&args.file, args.process) {
            (_, Some(pid)) => Self::record(pid, args),
            (Some(file), None) => {
                // Says clearly what else a file may be.
                open::replay(file)?;
                Self::follow(file, file.display().to_string(), args, None)
            }
            (None, None) => Err(Failure::new("name a spool, or a process with -p PID")),
        }
    }

    /// Records a process into a file that has no name any more.
    fn record(pid: u32, args: &TopArgs) -> Result<Self, Failure> {
        let path =
            std::env::temp_dir().join(format!("stackpulse-top-{}.spool", std::process::id()));
        let shown = path.display().to_string();
        let file = File::options().write(true).create_new(true).open(&path).map_err(|error| {
            Failure::new(format!(
                "create {shown}: {error}; set TMPDIR to a directory that can be written"
            ))
        })?;
        let started = Self::start(pid, file, args).and_then(|mut recorder| {
            // The header is there once something was published.
            recorder.flush().map_err(|error| Failure::new(error.to_string()))?;
            Self::follow(&path, format!("process {pid}"), args, Some(recorder))
        });
        // Both ends are open, or of no use.
        let _ = fs::remove_file(&path);
        started
    }

    fn start(pid: u32, file: File, args: &TopArgs) -> Result<Recorder<File>, Failure> {
        let failed = |error: stackpulse_record::Error| Failure::new(error.to_string());
        let mut options = RecorderOptions::default();
        options.sample_rate = match args.freq {
            Rate::Maximum => SampleRate::Maximum,
            Rate::Hz(hz) => SampleRate::hz(hz).map_err(failed)?,
        };
        options.include_kernel = true;
        options.inherit_children = true;
        Recorder::attach_with_writer(pid, file, AttachMode::StopWhileAttaching, &options)
            .map_err(failed)
    }

    fn follow(
        path: &Path,
        name: String,
        args: &TopArgs,
        recorder: Option<Recorder<File>>,
    ) -> Result<Self, Failure> {
        let file = File::open(path)
            .map_err(|error| Failure::new(format!("open {}: {error}", path.display())))?;
        let tail = Tail::open(file).map_err(|error| Failure::new(open::explain(path, &error)))?;
        let filter = match &recorder {
            // A part of what is yet to come cannot be chosen by its place in the whole.
            Some(_) => select::live_filter(&args.select),
            None => select::sample_filter(path, &args.select)?,
        };
        Ok(Self {
            tail,
            path: path.to_path_buf(),
            name,
            loader: Loader::with_filter(filter),
            boot_id: Vec::new(),
            symbols: None,
            namer: None,
            lost: 0,
            recorder,
        })
    }

    pub(super) fn name(&self) -> String {
        self.name.clone()
    }

    /// Takes in what has been published since, within bounds.
    pub(super) fn advance(&mut self) -> Result<(), Failure> {
        if let Some(recorder) = &mut self.recorder {
            recorder.poll(Duration::ZERO).map_err(|error| Failure::new(error.to_string()))?;
        }
        for _ in 0..BATCH {
            match self.tail.next_with_tables() {
                Ok(Some((record, tables))) => {
                    match record {
                        Record::Host(host) => self.boot_id = host.boot_id.to_vec(),
                        Record::Lost { events, .. } => self.lost = self.lost.saturating_add(events),
                        _ => {}
                    }
                    self.loader.take(&record, tables);
                }
                Ok(None) => break,
                Err(ReadError::Replaced { .. }) => {
                    return Err(Failure::new(format!(
                        "{} was replaced while it was followed; start again to see the new one",
                        self.path.display()
                    )));
                }
                Err(error) => return Err(Failure::new(open::explain(&self.path, &error))),
            }
        }
        if let Some(symbols) = self.tail.take_names() {
            self.symbols = Some(symbols);
        }
        Ok(())
    }

    /// Names what there is now.
    pub(super) fn profile(&mut self, args: &SelectArgs) -> Profile {
        let boot_id = &self.boot_id;
        // The host's record comes before all samples, though maybe after the first look.
        let namer = self.namer.get_or_insert_with(|| Namer::new(boot_id.clone(), &args.symbols));
        let stacks = self.loader.stacks().clone();
        let mut profile = namer.name(stacks, self.symbols.as_ref(), &args.symbols);
        profile.keep(&select::name_filter(args));
        profile
    }

    pub(super) fn facts(&mut self) -> Facts {
        let has_ended = match &mut self.recorder {
            Some(recorder) => recorder.active_process_count().is_ok_and(|count| count == 0),
            None => !matches!(self.tail.state(), State::Torn { .. }),
        };
        Facts { samples: self.loader.stacks().total, lost: self.lost, has_ended }
    }
}
