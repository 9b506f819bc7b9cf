//! The moves of a world, and what must be true after each.

use std::sync::Arc;

use stateright::{Model, Property};

use super::check;
use super::world::{Disk, Mutation, Run, World, WorldState};
use crate::protocol::view::DAY;
use crate::protocol::{Action, Answer, NodeIndex, Request, VersionKind};

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

/// The fate of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Done,
    /// It fails and has no effect.
    Lost,
    /// It has its effect, but the answer does not arrive.
    Unanswered,
}

impl World {
    /// Returns the possible fates of a request.
    fn fates(state: &WorldState, action: Action) -> &'static [Fate] {
        let may_fail = match action.request {
            Request::ListVersions | Request::WriteManifest(_) | Request::DeleteManifest(_) => true,
            Request::ReadManifest(_) | Request::FindParts(_) | Request::CheckPart { .. } => false,
            Request::StorePart { .. }
            | Request::DeletePart { .. }
            | Request::DeleteObject(_)
            | Request::DeleteOlder(_) => state.faulty.is_none_or(|faulty| faulty == action.node),
        };
        match (state.budget.faults > 0 && may_fail, action.request) {
            _ if state.nodes[action.node.0].is_down => &[Fate::Done],
            (false, _) => &[Fate::Done],
            (true, Request::ListVersions) => &[Fate::Done, Fate::Lost],
            (true, _) => &[Fate::Done, Fate::Lost, Fate::Unanswered],
        }
    }

    fn start(&self, state: &mut WorldState, at: usize) {
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

    fn answer(&self, state: &mut WorldState, at: usize, action: Action, fate: Fate) {
        if fate != Fate::Done {
            state.budget.faults -= 1;
            if matches!(
                action.request,
                Request::StorePart { .. }
                    | Request::DeletePart { .. }
                    | Request::DeleteObject(_)
                    | Request::DeleteOlder(_)
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
            state.removed =
                state.removed.max(Some(listed).filter(|it| it.kind == VersionKind::Removed));
        }
        if self.breaks(Mutation::EarlyRemoval)
            && fate != Fate::Lost
            && let Request::WriteManifest(listed) = action.request
        {
            state.disks().for_each(|node| node.drop_older(listed.version));
        }
        if self.breaks(Mutation::BareNodes)
            && fate != Fate::Lost
            && let Request::DeleteManifest(listed) = action.request
        {
            state.disks().for_each(|node| _ = node.manifests.remove(&listed));
        }
        Run::handle(self, state, at, action, answer);
    }
}

impl Model for World {
    type State = WorldState;
    type Action = Move;

    fn init_states(&self) -> Vec<WorldState> {
        vec![self.initial()]
    }

    fn actions(&self, state: &WorldState, moves: &mut Vec<Move>) {
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
        let stands_still = |run: &Run| !run.is_under_way() || run.is_about_to_survey(self);
        let is_quiet = state.jobs.iter().all(|run| stands_still(run));
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

    fn next_state(&self, last: &WorldState, next: Move) -> Option<WorldState> {
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
            Property::always("no job sees or does what must not be", |_, state: &WorldState| {
                state.flaw.is_none()
            }),
            Property::always("sure readers see what was acknowledged", check::is_regular),
            Property::always("what sure readers see can be decoded", check::is_readable),
            Property::always("one repair puts everything in order", check::settles),
        ]
    }
}
