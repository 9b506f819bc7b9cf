//! The world that the machines run in, as a model: nodes with files, jobs, and what can go wrong.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use paritas_shards::ObjectId;
use stateright::{Model, Property};

use super::check;
use super::job::{Job, Run};
use crate::protocol::view::DAY;
use crate::protocol::{
    Action, Answer, Kind, Listed, NodeIndex, PartIndex, Quorum, Request, Shape, Spread, Version,
};

/// Number of parts that make an object.
pub const ENOUGH: usize = 2;
/// Number of parts up to the end of each stage.
pub const STAGES: [usize; 2] = [3, 4];

/// What is explored.
#[derive(Debug, Clone)]
pub struct World {
    pub quorum: Quorum,
    /// What every node has from the beginning: object 0, or the mark that it was removed.
    pub initial: Option<Kind>,
    pub jobs: Vec<Job>,
    pub budget: Budget,
    pub mutation: Option<Mutation>,
    /// What jobs came to in any history so far.
    pub reached: Arc<Mutex<BTreeSet<&'static str>>>,
}

/// How much may go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Budget {
    /// Requests about manifests, to any node, that fail with or without effect.
    pub faults: u8,
    /// Jobs that stop. What they have asked for last may happen yet.
    pub crashes: u8,
    /// Times that a node is out of reach. All outages and losses are of one node.
    pub outages: u8,
    /// Times that a node loses all that it has.
    pub losses: u8,
    /// Days that pass. Nothing that is under way takes that long.
    pub days: u8,
}

/// A rule that is broken, to see that the exploration finds it.
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
    /// The mark of a removed name is collected while older jobs are at work.
    EarlyCollection,
    /// Generations are counted without a clock.
    NoClock,
    /// What is written again gets a new generation.
    NewNumber,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    pub nodes: Vec<Arc<Disk>>,
    pub jobs: Vec<Arc<Run>>,
    pub budget: Budget,
    /// The one node that outages and losses are about.
    pub faulty: Option<NodeIndex>,
    /// The greatest version that was acknowledged.
    pub acked: Option<Listed>,
    /// The greatest mark of a removed name that was ever written.
    pub removed: Option<Listed>,
    /// The seconds since 1970.
    pub now: u64,
    /// What a job saw or did that must not be.
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

/// What happens next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    Start(usize),
    Answer(usize, Action, Fate),
    /// A request of a job that stopped has its effect.
    Late(usize, Action),
    Crash(usize),
    Down(NodeIndex),
    Up(NodeIndex),
    Lose(NodeIndex),
    Day,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Done,
    /// It fails and has no effect.
    Lost,
    /// It has its effect, but the answer does not arrive.
    Unanswered,
}

/// Returns the id of the object that job `number` writes; 0 is there from the beginning.
pub fn id(number: usize) -> ObjectId {
    ObjectId::new([number as u8; 16])
}

impl World {
    pub fn new(nodes: usize, jobs: &[Job], budget: Budget) -> Self {
        let quorum = Quorum::new(nodes, 1).unwrap();
        let (jobs, reached) = (jobs.to_vec(), Arc::default());
        Self { quorum, initial: Some(Kind::Put), jobs, budget, mutation: None, reached }
    }

    /// Begins with something else on the nodes.
    pub fn from(self, initial: Option<Kind>) -> Self {
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

    /// Keeps what a job came to.
    pub fn reach(&self, outcome: &'static str) {
        self.reached.lock().unwrap().insert(outcome);
    }

    pub fn breaks(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    fn initial(&self) -> State {
        let version = self.first();
        let listed = self.initial.map(|kind| Listed { version, kind, length: 1 });
        let manifests: BTreeSet<Listed> = listed.into_iter().collect();
        let mut nodes = vec![Disk { manifests, ..Disk::default() }; self.quorum.nodes()];
        if self.initial == Some(Kind::Put) {
            for (part, home) in self.spread().homes.iter().enumerate().take(STAGES[0]) {
                nodes[home.0].parts.insert((id(0), PartIndex(part)));
            }
        }
        State {
            jobs: self.jobs.iter().map(|_| Arc::new(Run::Waiting)).collect(),
            budget: self.budget,
            faulty: None,
            acked: listed,
            removed: listed.filter(|listed| listed.kind == Kind::Removed),
            now: 0,
            nodes: nodes.into_iter().map(Arc::new).collect(),
            flaw: None,
        }
    }

    /// Returns the version that is there from the beginning. Some came before it, so that
    /// forgetting it would matter.
    pub fn first(&self) -> Version {
        Version { generation: 5, object: id(0) }
    }

    pub fn is_rewrite(&self, object: ObjectId) -> bool {
        self.jobs.iter().enumerate().any(|(at, job)| *job == Job::Rewrite && id(at + 1) == object)
    }

    pub fn is_inline(&self, object: ObjectId) -> bool {
        self.jobs.iter().enumerate().any(|(at, job)| *job == Job::Inline && id(at + 1) == object)
    }

    fn shape(&self, listed: Listed) -> Shape {
        match listed.kind {
            Kind::Removed => Shape::Removed { order: self.serving().collect() },
            Kind::Put if self.is_inline(listed.version.object) => {
                Shape::Inline { order: self.serving().collect() }
            }
            Kind::Put => Shape::Shards { spread: self.spread(), stages: STAGES.to_vec() },
        }
    }

    /// Executes a request at its node.
    pub fn execute(&self, state: &mut State, job: Job, action: Action) -> Answer {
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

    /// Returns what may become of a request.
    fn fates(state: &State, action: Action) -> &'static [Fate] {
        let may_fail = match action.request {
            Request::ListVersions | Request::WriteManifest(_) | Request::DeleteManifest(_) => true,
            Request::ReadManifest(_) | Request::FindParts(_) | Request::CheckPart { .. } => false,
            Request::StorePart { .. } | Request::DeletePart { .. } | Request::DeleteObject(_) => {
                state.faulty.is_none_or(|faulty| faulty == action.node)
            }
        };
        match (state.budget.faults > 0 && may_fail, action.request) {
            _ if state.nodes[action.node.0].is_down => &[Fate::Done],
            (false, _) => &[Fate::Done],
            (true, Request::ListVersions) => &[Fate::Done, Fate::Lost],
            (true, _) => &[Fate::Done, Fate::Lost, Fate::Unanswered],
        }
    }

    fn start(&self, state: &mut State, at: usize) {
        state.jobs[at] = Arc::new(Run::start(self, at, state));
        if !self.jobs[at].writes() {
            return;
        }
        // Nobody sees anything of a put before its first manifest, and its first survey only tells
        // whether enough nodes answer. So all that happens in one move.
        while let Some(action) = state.jobs[at].first_unseen() {
            let answer = self.execute(state, self.jobs[at], action);
            Run::handle(self, state, at, action, answer);
        }
    }

    fn answer(&self, state: &mut State, at: usize, action: Action, fate: Fate) {
        if fate != Fate::Done {
            state.budget.faults -= 1;
            if matches!(
                action.request,
                Request::StorePart { .. } | Request::DeletePart { .. } | Request::DeleteObject(_)
            ) {
                state.faulty = Some(action.node);
            }
        }
        let answer = match fate {
            Fate::Lost => Answer::Failed,
            Fate::Done | Fate::Unanswered => self.execute(state, self.jobs[at], action),
        };
        let answer = if fate == Fate::Done { answer } else { Answer::Failed };
        if let Request::WriteManifest(listed) = action.request {
            state.removed = state.removed.max(Some(listed).filter(|it| it.kind == Kind::Removed));
        }
        if self.breaks(Mutation::EarlyRemoval)
            && fate != Fate::Lost
            && let Request::WriteManifest(listed) = action.request
        {
            state.disks().for_each(|node| node.drop_older(listed.version));
        }
        Run::handle(self, state, at, action, answer);
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
            _ => return Answer::Failed,
        }
        Answer::Done
    }

    fn drop_older(&mut self, version: Version) {
        let older = self.manifests.iter().map(|listed| listed.version);
        let older: Vec<Version> = older.filter(|&older| older < version).collect();
        self.manifests.retain(|listed| listed.version >= version);
        self.parts.retain(|(object, _)| older.iter().all(|version| version.object != *object));
    }
}

impl State {
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

    fn may_fail(&self, node: NodeIndex) -> bool {
        self.faulty.is_none_or(|faulty| faulty == node)
    }
}

impl Model for World {
    type State = State;
    type Action = Move;

    fn init_states(&self) -> Vec<State> {
        vec![self.initial()]
    }

    fn actions(&self, state: &State, moves: &mut Vec<Move>) {
        if state.flaw.is_some() {
            return;
        }
        for (at, run) in state.jobs.iter().enumerate() {
            if matches!(**run, Run::Waiting) {
                moves.push(Move::Start(at));
            }
            for action in run.deliverable() {
                let fates = Self::fates(state, action).iter();
                moves.extend(fates.map(|&fate| Move::Answer(at, action, fate)));
            }
            moves.extend(run.zombies().map(|action| Move::Late(at, action)));
            if state.budget.crashes > 0 && run.can_crash() {
                moves.push(Move::Crash(at));
            }
        }
        let is_quiet = !state.jobs.iter().any(|run| run.is_under_way());
        if state.budget.days > 0 && (is_quiet || self.breaks(Mutation::EarlyCollection)) {
            moves.push(Move::Day);
        }
        for node in self.quorum.indices().filter(|&node| state.may_fail(node)) {
            if state.nodes[node.0].is_down {
                moves.push(Move::Up(node));
            } else if state.budget.outages > 0 {
                moves.push(Move::Down(node));
            }
            if state.budget.losses > 0 {
                moves.push(Move::Lose(node));
            }
        }
    }

    fn next_state(&self, last: &State, next: Move) -> Option<State> {
        let mut state = last.clone();
        match next {
            Move::Start(at) => self.start(&mut state, at),
            Move::Answer(at, action, fate) => self.answer(&mut state, at, action, fate),
            Move::Late(at, action) => {
                self.execute(&mut state, self.jobs[at], action);
                Arc::make_mut(&mut state.jobs[at]).bury(&action);
            }
            Move::Crash(at) => {
                state.budget.crashes -= 1;
                Arc::make_mut(&mut state.jobs[at]).crash();
            }
            Move::Down(node) => {
                state.budget.outages -= 1;
                state.faulty = Some(node);
                state.disk(node).is_down = true;
            }
            Move::Day => {
                state.budget.days -= 1;
                state.now += 2 * DAY;
            }
            Move::Up(node) => state.disk(node).is_down = false,
            Move::Lose(node) => {
                state.budget.losses -= 1;
                state.faulty = Some(node);
                let is_down = state.nodes[node.0].is_down;
                *state.disk(node) = Disk { is_down, is_empty: true, ..Disk::default() };
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no job sees or does what must not be", |_, state: &State| {
                state.flaw.is_none()
            }),
            Property::always("sure readers see what was acknowledged", check::is_regular),
            Property::always("what sure readers see can be decoded", check::is_readable),
            Property::always("one repair puts everything in order", check::settles),
        ]
    }
}
