//! The world of a run: disks, processes, and what becomes of each request.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use paritas_store::error::{Error, ErrorKind, Result};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::chance::Dice;
use super::disk::SimulatedDisk;
use crate::names::{MANIFESTS, READY};

/// A rule that is broken, to see that the simulation finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokenRule {
    /// A version counts as settled on t nodes.
    SmallWrites,
    /// A survey is sure with N - t - 1 answers.
    SmallReads,
    /// Older versions are removed when the first manifest is written.
    EarlyRemoval,
    /// A node that lost everything answers surveys.
    EmptyAnswers,
    /// Listings show what was there a while ago.
    LaggingLists,
    /// While things go wrong, nobody sees the flags of those who complete uploads.
    HiddenFlags,
    /// Nodes acknowledge files before they are durable.
    EarlyAnswers,
    /// More nodes lose their disks than may be lost.
    ManyLosses,
}

/// What may go wrong in a run.
#[derive(Debug, Clone)]
pub struct Weather {
    /// The nodes that may fail in any way, and lose what they have.
    pub faulty: Vec<usize>,
    /// Whether requests to all nodes may fail. Then no node loses anything.
    pub is_everywhere: bool,
    /// Faults in a hundred requests to a node that may fail.
    pub faults: u64,
    /// Requests in a hundred that take up to three seconds. The others take some milliseconds.
    pub slow: u64,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallFate {
    Answered,
    /// An error comes, and nothing is done.
    Refused,
    /// It is done, and an error comes.
    DoneAndRefused,
    /// It is done, and no answer comes.
    DoneInSilence,
    /// Nothing is done, and no answer comes.
    Silence,
    /// It is answered, but a bit of what is read is wrong.
    Garbled,
}

/// A request on its way: when it arrives, what becomes of it, and when the answer comes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Journey {
    /// How many disks the node has had before the one that is asked.
    pub disk: u32,
    pub there: Duration,
    pub fate: CallFate,
    pub back: Duration,
}

/// Nodes with their disks, and the processes that ask them.
#[derive(Debug)]
pub struct SimulatedWorld(Mutex<SimulatedState>);

pub(super) struct SimulatedState {
    pub chance: Dice,
    pub disks: Vec<SimulatedDisk>,
    pub weather: Weather,
    pub mutation: Option<BrokenRule>,
    processes: Vec<Process>,
    /// For each node, until when requests to it fail, and how.
    cuts: Vec<Option<(usize, Instant, CallFate)>>,
    pub is_calm: bool,
    begun: Instant,
    trace: Trace,
}

impl std::fmt::Debug for SimulatedState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SimulatedState")
    }
}

/// A process of a client.
struct Process {
    is_alive: bool,
    /// Number of requests after which it is killed.
    left: Option<u64>,
    killed: Arc<Notify>,
    /// For each node, how long requests take in any case.
    ways: Vec<Duration>,
}

/// All that has happened.
#[derive(Default)]
struct Trace {
    digest: blake3::Hasher,
    events: u64,
    /// The events as text, if they are to be shown.
    lines: Option<Vec<String>>,
}

impl SimulatedWorld {
    /// Creates a world of empty disks. `seed` decides about all that happens in it.
    #[must_use]
    pub fn new(
        nodes: usize,
        weather: Weather,
        mutation: Option<BrokenRule>,
        seed: u64,
    ) -> Arc<Self> {
        let mut chance = Dice::new(seed);
        let disks =
            (0..nodes).map(|_| SimulatedDisk::new(chance.time(Duration::from_secs(1 << 25))));
        let disks = disks.collect();
        Arc::new(Self(Mutex::new(SimulatedState {
            chance,
            disks,
            weather,
            mutation,
            processes: Vec::new(),
            cuts: vec![None; nodes],
            is_calm: false,
            begun: Instant::now(),
            trace: Trace::default(),
        })))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, SimulatedState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Draws something.
    pub fn draw<R>(&self, draw: impl FnOnce(&mut Dice) -> R) -> R {
        draw(&mut self.state().chance)
    }

    /// Keeps the events as text from now on.
    pub fn keep_lines(&self) {
        self.state().trace.lines = Some(Vec::new());
    }

    /// Returns the number of events, their digest, and their text if it was kept.
    pub fn take_trace(&self) -> (u64, blake3::Hash, Vec<String>) {
        let trace = &mut self.state().trace;
        (trace.events, trace.digest.finalize(), trace.lines.take().unwrap_or_default())
    }

    /// Notes an event.
    pub fn note(&self, event: &str) {
        self.state().note(event);
    }

    /// Starts a process, which is killed after some requests if their number is given. Returns its
    /// number, and what tells that it is killed.
    pub fn start_process(&self, left: Option<u64>) -> (usize, Arc<Notify>) {
        let (mut state, killed) = (self.state(), Arc::new(Notify::new()));
        // Surveys do not wait for nodes that are 20 ms away if enough others are near.
        let far =
            |chance: &mut Dice| Duration::from_millis(if chance.percent(25) { 20 } else { 0 });
        let ways = (0..state.disks.len()).map(|_| far(&mut state.chance)).collect();
        let notify = Arc::clone(&killed);
        state.processes.push(Process { is_alive: true, left, killed: notify, ways });
        (state.processes.len() - 1, killed)
    }

    /// Ends all faults. Disks that are gone come back without files.
    pub fn calm(&self) {
        let mut state = self.state();
        state.is_calm = true;
        state.cuts.fill(None);
        state.disks.iter_mut().for_each(|disk| disk.is_down = false);
        state.note("all faults are over");
    }

    /// Sets how many of a hundred requests fail, and returns how many did before.
    pub fn set_faults(&self, faults: u64) -> u64 {
        std::mem::replace(&mut self.state().weather.faults, faults)
    }

    /// Kills a process. It hears of nothing any more; what it has asked for may happen yet.
    pub fn kill(&self, process: usize) {
        self.state().kill(process);
    }

    /// Returns the nodes that bear no mark.
    pub fn unmarked(&self) -> Vec<usize> {
        let state = self.state();
        let disks = state.disks.iter().enumerate();
        let is_marked = |disk: &SimulatedDisk| disk.is_down || disk.stat(READY).is_some();
        disks.filter(|(_, disk)| !is_marked(disk)).map(|(node, _)| node).collect()
    }

    /// Loses a node's disk. Another one takes its place when `empty_after` has passed, which is
    /// longer than a client relies on a mark that it has seen.
    pub async fn lose(&self, node: usize, empty_after: Duration) {
        let keeps_mark = {
            let mut state = self.state();
            state.disks[node].is_down = true;
            state.note(&format!("node {node} is lost"));
            state.mutation == Some(BrokenRule::EmptyAnswers)
        };
        tokio::time::sleep(empty_after).await;
        let mut state = self.state();
        state.disks[node].empty(|path| keeps_mark && path == READY);
        state.disks[node].is_down = false;
        state.note(&format!("node {node} has an empty disk"));
    }

    /// Lets a file rot. The manifest of a version that is on fewer than `settled` nodes does not: a
    /// version that was never acknowledged, and is damaged wherever it is, hides the one before.
    pub fn rot(&self, node: usize, settled: usize) {
        let mut state = self.state();
        let SimulatedState { disks, chance, .. } = &mut *state;
        let copies = |path: &str| disks.iter().filter(|disk| disk.stat(path).is_some()).count();
        let may = |path: &&str| !path.starts_with(MANIFESTS) || copies(path) >= settled;
        let paths: Vec<String> = disks[node].paths().filter(may).map(str::to_owned).collect();
        if let Some(path) = disks[node].rot(&paths, chance) {
            state.note(&format!("{path} rots on node {node}"));
        }
    }
}

impl SimulatedState {
    pub fn is_alive(&self, process: usize) -> bool {
        self.processes[process].is_alive
    }

    pub fn kill(&mut self, process: usize) {
        self.processes[process].is_alive = false;
        self.processes[process].killed.notify_one();
        self.note(&format!("process {process} is killed"));
    }

    /// Sends a request on its way, unless its process is dead.
    pub fn send(&mut self, process: usize, node: usize) -> Option<Journey> {
        let journey = self.is_alive(process).then(|| self.journey(process, node))?;
        if let Some(left) = &mut self.processes[process].left {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.kill(process);
            }
        }
        Some(journey)
    }

    pub fn note(&mut self, event: &str) {
        let time = self.begun.elapsed();
        let line = format!("{time:?} {event}");
        self.trace.events += 1;
        self.trace.digest.update(line.as_bytes());
        self.trace.digest.update(b"\n");
        self.trace.lines.iter_mut().for_each(|lines| lines.push(line.clone()));
    }

    fn may_fail(&self, node: usize) -> bool {
        !self.is_calm && (self.weather.is_everywhere || self.weather.faulty.contains(&node))
    }

    /// Draws what becomes of a request.
    fn journey(&mut self, process: usize, node: usize) -> Journey {
        let slow = if self.chance.percent(self.weather.slow) { 3000 } else { 8 };
        let way = self.processes[process].ways[node];
        let there = way + self.chance.time(Duration::from_millis(slow));
        let disk = self.disks[node].replaced;
        let mut journey =
            Journey { disk, there, fate: CallFate::Answered, back: Duration::from_micros(50) };
        if !self.may_fail(node) {
            return journey;
        }
        if let Some((cut, until, fate)) = self.cuts[node]
            && until > Instant::now()
            && (cut == process || cut == usize::MAX)
        {
            return Journey { fate, ..journey };
        }
        if self.chance.below(1000) < self.weather.faults {
            // The node is out of this process's reach for a while, or of that of all.
            let whose = self.chance.choose(&[process, usize::MAX]);
            let until = Instant::now() + self.chance.time(Duration::from_secs(60));
            self.cuts[node] =
                Some((whose, until, self.chance.choose(&[CallFate::Refused, CallFate::Silence])));
        }
        if self.chance.percent(self.weather.faults) {
            journey.fate = self.chance.choose(&[
                CallFate::Refused,
                CallFate::Refused,
                CallFate::DoneAndRefused,
                CallFate::DoneInSilence,
                CallFate::Silence,
                CallFate::Garbled,
            ]);
            // What nobody waits for any more may happen minutes later.
            if journey.fate == CallFate::DoneInSilence {
                journey.there = self.chance.time(Duration::from_secs(600));
            }
        }
        journey
    }

    /// Does what a request asks for when it arrives at its node.
    pub fn arrive<T>(
        &mut self,
        (process, node): (usize, usize),
        what: &str,
        Journey { fate, disk, .. }: Journey,
        act: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let refused = |message: &str| Err(Error::new(ErrorKind::Io, message.to_owned()));
        // The last requests of a killed process happen or not.
        let is_lost = !self.is_alive(process) && self.chance.percent(50);
        let done = match fate {
            _ if is_lost => refused("the client is killed"),
            _ if self.disks[node].is_down || self.disks[node].replaced != disk => {
                refused("the disk does not answer")
            }
            CallFate::Refused | CallFate::Silence => refused("refused"),
            _ => act(self),
        };
        let mut line = format!("process {process} at node {node}: {what}: ");
        let outcome = done.as_ref().map_or_else(ToString::to_string, |_| format!("{fate:?}"));
        let _ = line.write_str(&outcome);
        self.note(&line);
        match fate {
            CallFate::DoneAndRefused if done.is_ok() => refused("the connection broke"),
            _ => done,
        }
    }

    /// Removes all versions that are older than one whose manifest was written, if that rule is
    /// broken.
    pub fn written(&mut self, path: &str) {
        let Some((folder, version)) = path.rsplit_once('/') else { return };
        if self.mutation != Some(BrokenRule::EarlyRemoval) || !folder.starts_with("manifests/") {
            return;
        }
        for disk in &mut self.disks {
            let is_older = |path: &str| {
                path.rsplit_once('/').is_some_and(|(of, other)| of == folder && other < version)
            };
            disk.delete_all(is_older);
        }
    }
}
