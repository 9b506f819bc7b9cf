//! What is explored: nodes with files, jobs at different stages, and what can go wrong.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use paritas_shards::ObjectId;

use crate::protocol::{
    Action, Answer, Get, Listed, NodeIndex, PartIndex, Promote, Put, Quorum, Repair, Request,
    RunningMachine, Shape, Spread, Version, VersionKind,
};

/// Number of parts that make an object.
pub const ENOUGH: usize = 2;
/// Number of parts up to the end of each stage.
pub const STAGES: [usize; 2] = [3, 4];

/// What is explored.
#[derive(Debug, Clone)]
pub struct World {
    pub quorum: Quorum,
    /// The initial content of every node: object 0, or the mark that it was removed.
    pub initial: Option<VersionKind>,
    pub jobs: Vec<Job>,
    pub budget: Misfortune,
    pub mutation: Option<Mutation>,
    /// The outcomes of jobs in all histories so far.
    pub reached: Arc<Mutex<BTreeSet<&'static str>>>,
}

/// How much may go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Misfortune {
    /// Requests about manifests, to any node, that fail with or without effect.
    pub faults: u8,
    /// Jobs that stop. Their last requests may still take effect later.
    pub crashes: u8,
    /// Times that a node is out of reach. All outages and losses are of one node.
    pub outages: u8,
    /// Times that a node loses all that it has.
    pub losses: u8,
    /// Days that pass. Each step of a job takes less time than that, but for storing parts.
    pub days: u8,
}

/// A rule that is broken on purpose, to show that the exploration finds the flaw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    /// A version counts as settled on t nodes.
    SmallWrites,
    /// A survey is sure with N - t - 1 answers.
    SmallReads,
    /// Older versions are removed when the first manifest is written.
    EarlyRemoval,
    /// A writer takes back its version if too few manifests were written.
    RollBack,
    /// A node that lost everything answers surveys.
    EmptyAnswers,
    /// An older version is deleted on nodes that have no greater one.
    BareNodes,
    /// The mark of a removed name is collected while older jobs are at work.
    EarlyCollection,
    /// Generations are counted without a clock.
    NoClock,
    /// A version is numbered by the time at which its put began.
    EarlyClock,
    /// What is written again gets a new generation.
    NewNumber,
    /// A put that expects nothing looks when it begins, and not when it is numbered.
    EarlyLook,
}

/// What a job does. The object that a put writes has the job's number plus 1 as its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Job {
    /// Puts an object in shards.
    Put,
    /// Puts an object in shards, and allows one of them to be missing.
    PutMost,
    /// Puts an object that stands in its manifest.
    Inline,
    /// Puts an object that stands in its manifest, if there is none.
    InlineNew,
    Remove,
    /// Writes the initial bytes again, in place of their version.
    Rewrite,
    Get,
    /// Promotes the initial object.
    Promote,
    Repair,
    /// Repairs the name, and reads the manifests of all nodes.
    Scrub,
}

/// How far a job is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Run {
    Waiting,
    Put(RunningMachine<Put>, Option<Listed>),
    Get(RunningMachine<Get>, Option<Listed>),
    /// A reader reads the shards that its survey found.
    Fetch(Fetch, Option<Listed>),
    Promote(RunningMachine<Promote>),
    Repair(RunningMachine<Repair>),
    /// The job stopped. Its last requests may have effects yet.
    Crashed(BTreeSet<Action>),
    Ended,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fetch {
    pub listed: Listed,
    pub waiting: BTreeSet<Action>,
    pub found: BTreeSet<PartIndex>,
}

impl Job {
    /// Whether the job makes a new version.
    pub fn writes(self) -> bool {
        let reads = [Self::Get, Self::Promote, Self::Repair, Self::Scrub];
        !reads.contains(&self)
    }

    /// Whether the job puts an object that stands in its manifest.
    fn is_inline(self) -> bool {
        matches!(self, Self::Inline | Self::InlineNew)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WorldState {
    pub nodes: Vec<Arc<Disk>>,
    pub jobs: Vec<Arc<Run>>,
    pub budget: Misfortune,
    /// The one node that outages and losses are about.
    pub faulty: Option<NodeIndex>,
    /// The greatest version that was acknowledged.
    pub acked: Option<Listed>,
    /// The greatest mark of a removed name that was ever written.
    pub removed: Option<Listed>,
    /// The seconds since 1970.
    pub now: u64,
    /// A forbidden thing that a job saw or did.
    pub flaw: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Disk {
    pub manifests: BTreeSet<Listed>,
    pub parts: BTreeSet<(ObjectId, PartIndex)>,
    pub is_down: bool,
    /// Whether it lost everything and was not repaired since.
    pub is_empty: bool,
}

/// Returns the id of the object that job `number` writes; 0 is there from the beginning.
pub fn id(number: usize) -> ObjectId {
    ObjectId::new([number as u8; 16])
}

impl World {
    pub fn new(nodes: usize, jobs: &[Job], budget: Misfortune) -> Self {
        let quorum = Quorum::new(nodes, 1).unwrap();
        let (jobs, reached) = (jobs.to_vec(), Arc::default());
        Self { quorum, initial: Some(VersionKind::Put), jobs, budget, mutation: None, reached }
    }

    /// Begins with other content on the nodes.
    pub fn from(self, initial: Option<VersionKind>) -> Self {
        Self { initial, ..self }
    }

    /// Drains the last node.
    pub fn with_a_drained_node(self) -> Self {
        Self { quorum: self.quorum.with_drained(1).unwrap(), ..self }
    }

    /// Breaks a rule.
    pub fn broken(self, mutation: Mutation) -> Self {
        let quorum = self.quorum;
        let (read, write) = (quorum.to_read(), quorum.to_write());
        let quorum = match mutation {
            Mutation::SmallWrites => quorum.broken(read, write - 1),
            Mutation::SmallReads => quorum.broken(read - 1, write),
            _ => quorum,
        };
        Self { quorum, mutation: Some(mutation), ..self }
    }

    pub fn spread(&self) -> Spread {
        let homes = (0..STAGES[1]).map(|part| NodeIndex(part % self.quorum.serving())).collect();
        let domains = (0..self.quorum.nodes()).collect();
        Spread { homes, substitutes: self.serving().collect(), domains }
    }

    /// Returns the nodes that are not drained.
    pub fn serving(&self) -> impl Iterator<Item = NodeIndex> + use<> {
        (0..self.quorum.serving()).map(NodeIndex)
    }

    /// Returns the order in which nodes get a manifest that few need. Each object has another one.
    pub fn order(&self, object: ObjectId) -> Vec<NodeIndex> {
        let first = usize::from(object.as_bytes()[0]);
        self.serving().map(|node| NodeIndex((node.0 + first) % self.quorum.serving())).collect()
    }

    /// Records the outcome of a job.
    pub fn reach(&self, outcome: &'static str) {
        self.reached.lock().unwrap().insert(outcome);
    }

    pub fn breaks(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    pub fn initial(&self) -> WorldState {
        let version = self.first();
        let listed = self.initial.map(|kind| Listed { version, kind, length: 1 });
        let manifests: BTreeSet<Listed> = listed.into_iter().collect();
        let mut nodes = vec![Disk { manifests, ..Disk::default() }; self.quorum.nodes()];
        if self.initial == Some(VersionKind::Put) {
            for (part, home) in self.spread().homes.iter().enumerate().take(STAGES[0]) {
                nodes[home.0].parts.insert((id(0), PartIndex(part)));
            }
        }
        WorldState {
            jobs: self.jobs.iter().map(|_| Arc::new(Run::Waiting)).collect(),
            budget: self.budget,
            faulty: None,
            acked: listed,
            removed: listed.filter(|listed| listed.kind == VersionKind::Removed),
            now: 0,
            nodes: nodes.into_iter().map(Arc::new).collect(),
            flaw: None,
        }
    }

    /// Returns the initial version. Its generation is not the first, so that forgetting it would
    /// matter.
    pub fn first(&self) -> Version {
        Version { generation: 5, object: id(0) }
    }

    pub fn is_rewrite(&self, object: ObjectId) -> bool {
        self.jobs.iter().enumerate().any(|(at, job)| *job == Job::Rewrite && id(at + 1) == object)
    }

    pub fn is_new(&self, object: ObjectId) -> bool {
        self.jobs.iter().enumerate().any(|(at, job)| *job == Job::InlineNew && id(at + 1) == object)
    }

    pub fn is_inline(&self, object: ObjectId) -> bool {
        self.jobs.iter().enumerate().any(|(at, job)| job.is_inline() && id(at + 1) == object)
    }

    fn shape(&self, listed: Listed) -> Shape {
        match listed.kind {
            VersionKind::Removed => Shape::Removed { order: self.order(listed.version.object) },
            VersionKind::Put if self.is_inline(listed.version.object) => {
                Shape::Inline { order: self.order(listed.version.object) }
            }
            VersionKind::Put => Shape::Shards { spread: self.spread(), stages: STAGES.to_vec() },
        }
    }

    /// Executes a request at its node.
    pub fn execute(&self, state: &mut WorldState, job: Job, action: Action) -> Answer {
        let is_possible = |object| state.parts_in_reach(object) >= ENOUGH;
        let node = &state.nodes[action.node.0];
        if node.is_down {
            return Answer::Failed;
        }
        match action.request {
            Request::ListVersions if node.is_empty && !self.breaks(Mutation::EmptyAnswers) => {
                return Answer::Failed;
            }
            Request::ListVersions => {
                return Answer::Versions(node.manifests.iter().copied().collect());
            }
            Request::ReadManifest(listed) => {
                return match node.manifests.contains(&listed) {
                    true => Answer::Manifest(self.shape(listed)),
                    false => Answer::Failed,
                };
            }
            Request::FindParts(object) => return Answer::Parts(node.parts_of(object).collect()),
            Request::CheckPart { object, part } => {
                return match node.parts.contains(&(object, part)) {
                    true => Answer::Done,
                    false => Answer::Failed,
                };
            }
            Request::StorePart { object, .. } if !job.writes() && !is_possible(object) => {
                return Answer::Impossible;
            }
            _ => {}
        }
        Arc::make_mut(&mut state.nodes[action.node.0]).change(action.request)
    }
}

impl Disk {
    fn parts_of(&self, object: ObjectId) -> impl Iterator<Item = PartIndex> + '_ {
        self.parts.iter().filter(move |(of, _)| *of == object).map(|(_, part)| *part)
    }

    fn change(&mut self, request: Request) -> Answer {
        match request {
            Request::WriteManifest(listed) => _ = self.manifests.insert(listed),
            Request::DeleteManifest(listed) => _ = self.manifests.remove(&listed),
            Request::StorePart { object, part } => {
                self.parts.insert((object, part));
                return Answer::Stored { length: 1 };
            }
            Request::DeletePart { object, part } => _ = self.parts.remove(&(object, part)),
            Request::DeleteObject(object) => self.parts.retain(|(of, _)| *of != object),
            Request::DeleteOlder(listed) => {
                self.parts.retain(|(of, _)| *of != listed.version.object);
            }
            _ => return Answer::Failed,
        }
        Answer::Done
    }

    pub fn drop_older(&mut self, version: Version) {
        let older = self.manifests.iter().map(|listed| listed.version);
        let older: Vec<Version> = older.filter(|&older| older < version).collect();
        self.manifests.retain(|listed| listed.version >= version);
        self.parts.retain(|(object, _)| older.iter().all(|version| version.object != *object));
    }
}

impl WorldState {
    /// Returns a node, to change it.
    pub fn disk(&mut self, node: NodeIndex) -> &mut Disk {
        Arc::make_mut(&mut self.nodes[node.0])
    }

    /// Returns all nodes, to change them.
    pub fn disks(&mut self) -> impl Iterator<Item = &mut Disk> {
        self.nodes.iter_mut().map(Arc::make_mut)
    }

    /// Returns the number of different parts of an object on nodes that are not out of reach.
    pub fn parts_in_reach(&self, object: ObjectId) -> usize {
        let nodes = self.nodes.iter().filter(|node| !node.is_down);
        nodes.flat_map(|node| node.parts_of(object)).collect::<BTreeSet<_>>().len()
    }

    /// Returns the number of different parts of an object on all nodes.
    pub fn parts(&self, object: ObjectId) -> usize {
        self.parts_without(object, usize::MAX)
    }

    /// Returns the number of different parts of an object on all nodes but `lost`.
    pub fn parts_without(&self, object: ObjectId, lost: usize) -> usize {
        let nodes = self.nodes.iter().enumerate().filter(|(at, _)| *at != lost);
        nodes.flat_map(|(_, node)| node.parts_of(object)).collect::<BTreeSet<_>>().len()
    }

    pub fn may_fail(&self, node: NodeIndex) -> bool {
        self.faulty.is_none_or(|faulty| faulty == node)
    }
}
