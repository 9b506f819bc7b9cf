//! Repairing one name: every part and manifest where it belongs, older versions removed.
//!
//! | state | what is awaited | then |
//! | --- | --- | --- |
//! | surveying | versions, from all nodes | too few answers: unsure. No version: nothing. Else the greatest version's manifest is read |
//! | reading | the manifest, from one node, or in a scrub from all that have it | unreadable: it is read from the next node. An old mark of a removed name that is alone on all nodes is collected. Else the manifest is written to all nodes that should have it |
//! | settling | manifests | the object's parts are looked for |
//! | finding | parts, from all nodes | missing parts are made, and those away from home are copied there |
//! | storing | parts | what failed goes to substitutes. If anything was stored, or could not be made, another survey |
//! | checking | versions, from all nodes | too few answers: unsure. The object was replaced: what was stored is discarded. It could not be read: repair ends. It could not be made: its parts are looked for once more. Else surplus copies are dealt with |
//! | confirming | parts, from all nodes | another process has moved a part: repair must begin anew. Else too few parts are whole |
//! | proving | checks, on their homes, of parts that are elsewhere, too | a part that is whole on its home loses its copies elsewhere. Any other part is owed |
//! | thinning | deletions of surplus copies | older versions are removed |
//! | deleting | deletions of older shards, then of their manifests | done |
//! | collecting | deletions of the mark of a removed name | done |
//!
//! Repair completes the greatest version, even if its writer did not finish: its shards were
//! durable before its first manifest, and readers may have read it. Older versions are removed only
//! if every part of the first stage exists.

use std::collections::BTreeSet;

use paritas_shards::ObjectId;

use crate::protocol::action::ask;
use crate::protocol::removal::Removal;
use crate::protocol::settling::Settling;
use crate::protocol::{
    Action, Answer, Event, Listed, NextStep, NodeIndex, PartIndex, PartPlaces, Procedure, Quorum,
    Request, Shape, Spread, View,
};

/// Brings one name into order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Repair {
    view: View,
    phase: RepairPhase,
    /// The version that counts, once it is known.
    latest: Option<Listed>,
    /// The nodes whose manifest of this version could not be read, and was not written anew since.
    damaged: BTreeSet<NodeIndex>,
    /// Whether the manifests of all nodes are read, or only one.
    reads_all: bool,
    settling: Option<Settling>,
    shards: Option<ObjectParts>,
    removal: Removal,
    now: u64,
}

/// The parts of the object that counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ObjectParts {
    spread: Spread,
    stages: Vec<usize>,
    places: PartPlaces,
    stored: PartPlaces,
    /// The parts that were seen to be whole on their homes.
    proved: PartPlaces,
    failed: BTreeSet<NodeIndex>,
    is_impossible: bool,
    /// Whether a part has come to a node since it turned out that too few are whole.
    is_moved: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum RepairPhase {
    Beginning,
    Surveying,
    Reading,
    Settling,
    Finding,
    Storing,
    Checking,
    Confirming,
    Discarding,
    Proving,
    Thinning,
    DeletingObjects,
    DeletingManifests,
    /// Only the mark of its removal remains of the name, and the mark is old.
    Marked,
    Collecting,
}

/// The outcome of [`Repair`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RepairOutcome {
    /// The version that counts is in order, as far as nodes answered.
    Repaired {
        /// The version.
        listed: Listed,
        /// Number of parts that were made or copied.
        stored: usize,
        /// The stage that the object is in, counted from 1; 0 if it has no shards.
        stage: usize,
        /// Whether something must still be repaired when more nodes answer.
        is_owed: bool,
    },
    /// The name has no version.
    Nothing,
    /// The name was removed long ago. Its mark is deleted.
    Collected,
    /// Repair must begin anew: the name means another version by now, or another process moves the
    /// parts.
    Superseded,
    /// Too few nodes answered.
    Unsure,
    /// Too few parts of the version that counts are whole and within reach. Nothing was removed.
    TooFewParts(Listed),
    /// No manifest of the version that counts could be read: all were damaged or out of reach.
    Unreadable(Listed),
}

impl Repair {
    /// Prepares to repair a name. `now` are the seconds since 1970.
    pub fn new(quorum: Quorum, now: u64) -> Self {
        Self {
            view: View::new(quorum),
            phase: RepairPhase::Beginning,
            latest: None,
            damaged: BTreeSet::new(),
            reads_all: false,
            settling: None,
            shards: None,
            removal: Removal::default(),
            now,
        }
    }

    /// Reads the manifests of all nodes, so that damaged ones are found.
    pub fn reading_all(self) -> Self {
        Self { reads_all: true, ..self }
    }

    fn survey(&mut self, phase: RepairPhase) -> NextStep<RepairOutcome> {
        self.phase = phase;
        NextStep::Act(self.view.survey())
    }

    /// Reads the manifest from one of the nodes that have it, or from all. If all of these were
    /// tried, another survey shows whether the version still counts, and which other nodes have it.
    fn read(&mut self, listed: Listed) -> NextStep<RepairOutcome> {
        self.discount(listed);
        let mut holders = self.view.holders(listed.version);
        if !self.reads_all {
            holders = holders.into_iter().take(1).collect();
        }
        match (holders.is_empty(), self.phase) {
            (false, _) => {
                self.phase = RepairPhase::Reading;
                NextStep::Act(ask(holders, Request::ReadManifest(listed)))
            }
            (true, RepairPhase::Checking) => NextStep::Done(RepairOutcome::Unreadable(listed)),
            (true, _) => self.survey(RepairPhase::Checking),
        }
    }

    /// Counts nodes whose manifest is damaged as nodes without it, so that they get it anew.
    fn discount(&mut self, listed: Listed) {
        self.damaged.iter().for_each(|&node| self.view.deleted(node, listed.version));
    }

    fn settle(&mut self, listed: Listed) -> NextStep<RepairOutcome> {
        self.discount(listed);
        self.phase = RepairPhase::Settling;
        let actions = self.settling.as_mut().map(|settling| {
            settling.replace(&self.damaged);
            settling.next(&self.view, listed)
        });
        match actions {
            Some(actions) if !actions.is_empty() => NextStep::Act(actions),
            _ => self.find(listed.version.object),
        }
    }

    fn find(&mut self, object: ObjectId) -> NextStep<RepairOutcome> {
        match self.shards {
            None => self.delete_objects(),
            Some(_) => self.find_in(RepairPhase::Finding, object),
        }
    }

    fn find_in(&mut self, phase: RepairPhase, object: ObjectId) -> NextStep<RepairOutcome> {
        self.phase = phase;
        NextStep::Act(ask(self.view.quorum().indices(), Request::FindParts(object)))
    }

    fn store(&mut self, listed: Listed) -> NextStep<RepairOutcome> {
        self.phase = RepairPhase::Storing;
        let Some(shards) = &self.shards else { return self.delete_objects() };
        let actions = shards.to_store(listed.version.object);
        let is_over = actions.is_empty() || shards.is_impossible;
        match (is_over, shards.stored.is_empty() && !shards.is_impossible) {
            (false, _) => NextStep::Act(actions),
            (true, false) => self.survey(RepairPhase::Checking),
            (true, true) => self.prove(listed.version.object),
        }
    }

    fn check(&mut self, listed: Listed) -> NextStep<RepairOutcome> {
        let object = listed.version.object;
        if self.view.is_gone(listed.version) {
            self.phase = RepairPhase::Discarding;
            let stored = self.shards.as_ref().map(|shards| shards.stored.deletions(object));
            return NextStep::Act(stored.unwrap_or_default());
        }
        let is_impossible = self.shards.as_ref().is_some_and(|shards| shards.is_impossible);
        match self.view.latest() {
            Some(latest) if latest != listed => NextStep::Done(RepairOutcome::Superseded),
            _ if self.settling.is_none() => self.read(listed),
            _ if is_impossible => self.find_in(RepairPhase::Confirming, object),
            _ => self.prove(object),
        }
    }

    /// Ends a repair for which too few parts were whole, unless they are being moved.
    fn confirm(&self, listed: Listed) -> NextStep<RepairOutcome> {
        let is_moved = self.shards.as_ref().is_some_and(|shards| shards.is_moved);
        NextStep::Done(match is_moved {
            true => RepairOutcome::Superseded,
            false => RepairOutcome::TooFewParts(listed),
        })
    }

    /// Checks the home copy of each part that has copies elsewhere, too.
    fn prove(&mut self, object: ObjectId) -> NextStep<RepairOutcome> {
        self.phase = RepairPhase::Proving;
        let check = |(part, node)| Action { node, request: Request::CheckPart { object, part } };
        let unproved = self.shards.iter().flat_map(ObjectParts::unproved);
        NextStep::Act(unproved.map(check).collect())
    }

    fn thin(&mut self, object: ObjectId) -> NextStep<RepairOutcome> {
        self.phase = RepairPhase::Thinning;
        let surplus = self.shards.as_ref().map(|shards| shards.surplus().deletions(object));
        NextStep::Act(surplus.unwrap_or_default())
    }

    fn delete_objects(&mut self) -> NextStep<RepairOutcome> {
        self.phase = RepairPhase::DeletingObjects;
        if self.shards.as_ref().is_some_and(|shards| !shards.is_complete()) {
            return self.finish();
        }
        self.latest.into_iter().for_each(|latest| self.discount(latest));
        self.removal = Removal::new(&self.view);
        NextStep::Act(self.removal.of_objects(self.view.quorum()))
    }

    fn delete_manifests(&mut self) -> NextStep<RepairOutcome> {
        self.phase = RepairPhase::DeletingManifests;
        NextStep::Act(self.removal.of_manifests(&self.view))
    }

    fn finish(&self) -> NextStep<RepairOutcome> {
        let Some(listed) = self.latest else { return NextStep::Done(RepairOutcome::Nothing) };
        let is_settled =
            self.settling.as_ref().is_some_and(|settling| settling.is_complete(&self.view, listed))
                && self.damaged.is_empty();
        let is_home = self.shards.as_ref().is_none_or(ObjectParts::is_home);
        // A part that failed its check at home is damaged there, or its node failed.
        let is_proved = !self.shards.iter().any(|shards| shards.unproved().next().is_some());
        let is_owed = !is_settled || !is_home || !is_proved || !self.view.removable().is_empty();
        let stored = self.shards.as_ref().map_or(0, |shards| shards.stored.iter().count());
        let stage = self.shards.as_ref().map_or(0, ObjectParts::stage);
        NextStep::Done(RepairOutcome::Repaired { listed, stored, stage, is_owed })
    }

    /// Decides what follows once it is known which version counts.
    fn next_of(&mut self, listed: Listed) -> NextStep<RepairOutcome> {
        match self.phase {
            RepairPhase::Beginning | RepairPhase::Surveying => self.read(listed),
            RepairPhase::Reading if self.settling.is_none() => self.read(listed),
            RepairPhase::Reading | RepairPhase::Settling => self.settle(listed),
            RepairPhase::Finding | RepairPhase::Storing => self.store(listed),
            RepairPhase::Checking => self.check(listed),
            RepairPhase::Confirming => self.confirm(listed),
            RepairPhase::Discarding => NextStep::Done(RepairOutcome::Superseded),
            RepairPhase::Proving => self.thin(listed.version.object),
            RepairPhase::Thinning => self.delete_objects(),
            RepairPhase::DeletingObjects => self.delete_manifests(),
            RepairPhase::Marked => self.collect(listed),
            RepairPhase::Collecting if self.view.latest().is_none() => {
                NextStep::Done(RepairOutcome::Collected)
            }
            RepairPhase::DeletingManifests | RepairPhase::Collecting => self.finish(),
        }
    }

    /// Takes in what the manifest describes.
    fn note_shape(&mut self, shape: &Shape) {
        let is_collectable = self.view.is_collectable(self.now);
        self.settling = Some(match shape {
            Shape::Inline { order } | Shape::Removed { order } => Settling::on_few(order.clone()),
            Shape::Shards { .. } => Settling::everywhere(),
        });
        match shape {
            Shape::Shards { spread, stages } => {
                self.shards = Some(ObjectParts::new(spread.clone(), stages.clone()));
            }
            Shape::Removed { .. } if is_collectable => self.phase = RepairPhase::Marked,
            Shape::Inline { .. } | Shape::Removed { .. } => {}
        }
    }

    fn collect(&mut self, mark: Listed) -> NextStep<RepairOutcome> {
        self.phase = RepairPhase::Collecting;
        NextStep::Act(ask(self.view.holders(mark.version), Request::DeleteManifest(mark)))
    }
}

impl Procedure for Repair {
    type Outcome = RepairOutcome;

    fn note(&mut self, event: &Event) {
        self.view.note(event);
        self.removal.note(event);
        if let Some(settling) = &mut self.settling {
            settling.note(event);
        }
        if let Some(shards) = &mut self.shards {
            shards.note(event);
        }
        let node = event.action.node;
        match (event.action.request, &event.answer) {
            (Request::ReadManifest(_), Answer::Manifest(shape)) => self.note_shape(shape),
            (Request::ReadManifest(_), _) => _ = self.damaged.insert(node),
            (Request::WriteManifest(_), Answer::Done) => _ = self.damaged.remove(&node),
            _ => {}
        }
    }

    fn next(&mut self) -> NextStep<RepairOutcome> {
        match self.phase {
            RepairPhase::Beginning => return self.survey(RepairPhase::Surveying),
            RepairPhase::Surveying | RepairPhase::Checking if !self.view.is_sure() => {
                return NextStep::Done(RepairOutcome::Unsure);
            }
            RepairPhase::Surveying => self.latest = self.view.latest(),
            _ => {}
        }
        match self.latest {
            Some(latest) => self.next_of(latest),
            None => NextStep::Done(RepairOutcome::Nothing),
        }
    }

    fn is_enough(&self) -> bool {
        match self.phase {
            RepairPhase::Surveying | RepairPhase::Checking => self.view.is_sure(),
            RepairPhase::Discarding
            | RepairPhase::Thinning
            | RepairPhase::DeletingObjects
            | RepairPhase::DeletingManifests
            | RepairPhase::Collecting => true,
            _ => false,
        }
    }
}

impl ObjectParts {
    fn new(spread: Spread, stages: Vec<usize>) -> Self {
        let [places, stored, proved] = [const { PartPlaces::new() }; 3];
        let failed = BTreeSet::new();
        let [is_impossible, is_moved] = [false; 2];
        Self { spread, stages, places, stored, proved, failed, is_impossible, is_moved }
    }

    fn note(&mut self, event: &Event) {
        let node = event.action.node;
        match (event.action.request, &event.answer) {
            (Request::FindParts(_), Answer::Parts(parts)) => {
                let is_new = parts.iter().any(|&part| !self.places.has_on(part, node));
                self.is_moved |= self.is_impossible && is_new;
                parts.iter().for_each(|&part| self.places.add(part, node));
            }
            (Request::StorePart { part, .. }, Answer::Stored { .. }) => {
                self.stored.add(part, node);
                self.places.add(part, node);
                self.proved.add(part, node);
            }
            (Request::StorePart { .. }, Answer::Impossible) => self.is_impossible = true,
            (Request::FindParts(_) | Request::StorePart { .. }, _) => _ = self.failed.insert(node),
            (Request::CheckPart { part, .. }, Answer::Done) => self.proved.add(part, node),
            _ => {}
        }
    }

    /// Returns the stage that the object is in, from 1. A stage that was begun counts, because
    /// repair finishes it.
    fn stage(&self) -> usize {
        let last = self.places.parts().last().map_or(0, |part| part.0);
        self.stages.iter().take_while(|&&end| end <= last).count() + 1
    }

    /// Returns the parts that the object should have.
    fn parts(&self) -> impl Iterator<Item = PartIndex> + use<> {
        (0..self.stages.get(self.stage() - 1).copied().unwrap_or(0)).map(PartIndex)
    }

    /// Returns the actions that store the parts that are missing or away from a home that answers.
    fn to_store(&self, object: ObjectId) -> Vec<Action> {
        let can_go_home = |part| {
            self.spread
                .home(part)
                .is_some_and(|home| !self.failed.contains(&home) && !self.places.has_on(part, home))
        };
        let lacking = self.parts().filter(|&part| can_go_home(part) || !self.places.has(part));
        let chosen = self.spread.choose(lacking, &self.failed, &self.places);
        let store = |(part, node)| Action { node, request: Request::StorePart { object, part } };
        chosen.into_iter().map(store).collect()
    }

    /// Whether every part is somewhere.
    fn is_complete(&self) -> bool {
        self.parts().all(|part| self.places.has(part))
    }

    /// Whether every part is on its home.
    fn is_home(&self) -> bool {
        self.parts().all(|part| self.spread.is_home(part, &self.places))
    }

    /// Returns parts with their homes: those that are on their homes and elsewhere, too, but were
    /// not proved to be whole on their homes.
    fn unproved(&self) -> impl Iterator<Item = (PartIndex, NodeIndex)> + '_ {
        let home = |part| self.spread.home(part).map(|home| (part, home));
        self.places.parts().filter_map(home).filter(|&(part, home)| {
            let is_twice = self.places.has_on(part, home) && self.places.of(part).count() > 1;
            is_twice && !self.proved.has_on(part, home)
        })
    }

    /// Returns the copies elsewhere of parts that are proved to be whole on their homes.
    fn surplus(&self) -> PartPlaces {
        let is_surplus = |&(part, node): &(PartIndex, NodeIndex)| {
            self.spread
                .home(part)
                .is_some_and(|home| home != node && self.proved.has_on(part, home))
        };
        self.places.iter().filter(is_surplus).collect()
    }
}
