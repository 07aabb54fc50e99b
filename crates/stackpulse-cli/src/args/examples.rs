//! The examples at the end of each command's help.

pub(super) const ALL: &str = "\
Examples:
  stackpulse record -- ./program argument      record a program into stackpulse.spool
  stackpulse report                            show where its time went
  stackpulse record -p 1234 -d 10s --report    look at a running process for ten seconds";

pub(super) const RECORD: &str = "\
Examples:
  stackpulse record -- ./program argument      into stackpulse.spool
  stackpulse record -o run.spool RUST_LOG=info ./program
  stackpulse record -p 1234 -d 10s --report    a running process, for ten seconds
  stackpulse record -F 4000 -g dwarf,65528 -- ./deep
  sudo stackpulse record --kernel -- ./program with kernel frames; the file stays yours
  sudo stackpulse record -a -d 10s             everything that runs, for ten seconds
  sudo stackpulse record -G system.slice/nginx.service -d 10s

Exit status: the program's own; 125 if the recording failed, 126 if the program could not be run, 127 if
there is none.";

pub(super) const REPORT: &str = "\
Examples:
  stackpulse report run.spool
  stackpulse report --tree callers -I malloc   who calls malloc
  stackpulse report --time 1s-5s --by thread   which threads ran in those seconds
  stackpulse report --lines --tree none        the hottest source lines
  stackpulse report --json | jq '.functions[0]'";

pub(super) const INFO: &str = "\
Examples:
  stackpulse info run.spool
  stackpulse info --json run.spool | jq .lost
  stackpulse info --dump run.spool | head";

pub(super) const VERIFY: &str = "\
Examples:
  stackpulse verify run.spool

Exit status: 0 sound, 1 torn but readable up to there, 2 damaged or no spool.";

pub(super) const EXPORT: &str = "\
Examples:
  stackpulse export -o run.svg run.spool       a flame graph
  stackpulse export -o run.html run.spool      one page to look around in, or to send
  stackpulse export -o run.pb.gz run.spool     for `go tool pprof run.pb.gz`
  stackpulse export -o run.json.gz --max-size 20M run.spool    for profiler.firefox.com
  stackpulse export -f collapsed run.spool > run.folded
  stackpulse export -f collapsed --time 10%-20% -X '^idle' run.spool";

pub(super) const VIEW: &str = "\
Examples:
  stackpulse view run.spool
  stackpulse view --no-open --port 8080 run.spool    over ssh -L 8080:127.0.0.1:8080";

pub(super) const COMPLETIONS: &str = "\
Examples:
  stackpulse completions bash > ~/.local/share/bash-completion/completions/stackpulse
  stackpulse completions zsh > ~/.zfunc/_stackpulse
  stackpulse completions fish > ~/.config/fish/completions/stackpulse.fish";

pub(super) const DIFF: &str = "\
Examples:
  stackpulse diff before.spool after.spool
  stackpulse diff -A a1.spool,a2.spool,a3.spool -B b1.spool,b2.spool,b3.spool
  stackpulse diff --fail-if 'self(parse) > +3%' before.spool after.spool
  stackpulse diff --format svg -o diff.svg before.spool after.spool

A share is that of all samples chosen. The interval holds the true change in 95 of 100 cases, as far as the
recording's own parts tell: resampled windows of time, or whole runs where a side has three or more. What
differs from run to run is seen with several runs only.

Exit status: 0, or 1 where a condition of --fail-if holds.";

pub(super) const DOCTOR: &str = "\
Examples:
  stackpulse doctor
  stackpulse doctor -p 1234
  stackpulse doctor --json | jq '.checks[] | select(.state != \"good\")'

Exit status: 0 if recording works, with or without limits; 1 if it does not.";

pub(super) const CARGO: &str = "\
Examples:
  stackpulse cargo --report -- --input file
  stackpulse cargo --bench parsing -o parsing.spool
  stackpulse cargo --example shown --features fast
  stackpulse cargo --test integration -- one_test --exact";

pub(super) const SYMBOLIZE: &str = "\
Examples:
  stackpulse symbolize a.spool
  stackpulse symbolize --debug-dir ./debug a.spool
  stackpulse symbolize --symfs ./sysroot a.spool

A stored name is replaced by one from a better source only; files of another build are never used.";

pub(super) const TOP: &str = "\
Examples:
  stackpulse top -p 1234
  stackpulse top stackpulse.spool              while another stackpulse records into it

Keys: s, t, n sort by self, total, name; / searches; space freezes; enter goes to the callers of the chosen
function, esc back; up, down, page up, page down, home, end choose; q leaves.";
