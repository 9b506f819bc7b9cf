//! One run: rounds of clients at work, then calm, repair, and the questions at the end.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use futures::future::{join, join_all};
use paritas::Code;
use paritas_store::error::{ErrorKind, Result};
use paritas_store::state::State;
use tokio::time::sleep;

use super::chance::Dice;
use super::client::{ClientJob, JOBS, NAMES, Scene, UPLOAD_JOBS, name, text};
use super::history::History;
use super::world::{BrokenRule, SimulatedWorld, Weather};
use crate::names;
use crate::outside::simulated::Simulated;
use crate::volume::Volume;

/// Codes, each with its number of nodes and of nodes that may be lost.
const VOLUMES: [(&str, usize, usize); 4] =
    [("2+1", 3, 1), ("2+1", 4, 1), ("2+2", 5, 2), ("bbdpg:k=2,m=1,m2=2,base=cauchy", 5, 1)];

/// What a run came to.
pub struct RunOutcome {
    /// What happened, but must never happen.
    pub flaws: Vec<String>,
    /// Number of events, and their digest.
    pub events: (u64, blake3::Hash),
    pub lines: Vec<String>,
    /// What jobs came to.
    pub reached: BTreeSet<String>,
}

/// Runs the world of a seed to its end. Keeps the events as text if they are wanted.
pub fn run(seed: u64, mutation: Option<BrokenRule>, keeps_lines: bool) -> RunOutcome {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().expect("a runtime");
    runtime.block_on(async {
        let _simulated = Simulated::begin(seed);
        let scene = scene(seed, mutation);
        if keeps_lines {
            scene.world.keep_lines();
        }
        scene.run().await;
        let (events, digest, lines) = scene.world.take_trace();
        let mut history = scene.history();
        let reached = std::mem::take(&mut history.reached);
        RunOutcome { flaws: history.check(), events: (events, digest), lines, reached }
    })
}

fn scene(seed: u64, mutation: Option<BrokenRule>) -> Scene {
    let mut chance = Dice::new(!seed);
    let (code, nodes, losses) = chance.choose(&VOLUMES);
    let code = Code::new(&code.parse().expect("a spec")).expect("a code");
    let weather = Weather {
        faulty: chance.some_of(nodes, losses),
        is_everywhere: chance.percent(40),
        faults: chance.choose(&[0, 2, 10, 30]),
        slow: chance.choose(&[2, 10, 30]),
    };
    let world = SimulatedWorld::new(nodes, weather, mutation, chance.number());
    // There is always something to read.
    let (menu, puts): (&[ClientJob], &[ClientJob]) = match chance.percent(30) {
        true => (&UPLOAD_JOBS, &[ClientJob::PutPieces]),
        false => (&JOBS, &[ClientJob::PutSmall, ClientJob::PutLarge]),
    };
    let mut jobs = vec![chance.choose(puts)];
    let more = 2 + chance.below(10) as usize;
    jobs.extend(chance.some_of(menu.len(), more).into_iter().map(|job| menu[job]));
    let names = 1 + chance.below(NAMES.len() as u64) as usize;
    let history = Mutex::new(History::new());
    Scene { world, code, nodes, losses, jobs, names, history, uploads: Mutex::default() }
}

impl Scene {
    async fn run(&self) {
        let doctor = self.open(self.world.start_process(None).0);
        self.mark(&doctor).await;
        let half_a_day = 6 * 3600;
        let (clients, rounds) =
            self.world.draw(|chance| (2 + chance.below(3), 2 + chance.below(2)));
        let clocks: Vec<i64> = (0..clients)
            .map(|_| {
                self.world.draw(|chance| chance.below(2 * half_a_day) as i64 - half_a_day as i64)
            })
            .collect();
        for _ in 0..rounds {
            let work = join_all(clocks.iter().map(|&ahead| self.live(ahead)));
            join(work, self.misfortunes()).await;
            if self.world.draw(|chance| chance.percent(30)) {
                sleep(Duration::from_secs(30 * 3600)).await;
            }
        }
        self.end().await;
    }

    /// Marks all nodes, before anything goes wrong.
    async fn mark(&self, doctor: &Volume) {
        let faults = self.world.set_faults(0);
        doctor.mark_nodes().await.expect("sound nodes");
        self.world.set_faults(faults);
    }

    /// Loses disks, and lets files rot, on the faulty nodes.
    async fn misfortunes(&self) {
        let (is_everywhere, mutation) = {
            let state = self.world.state();
            (state.weather.is_everywhere, state.mutation)
        };
        let mut nodes = self.world.state().weather.faulty.clone();
        if is_everywhere && mutation != Some(BrokenRule::ManyLosses) {
            nodes.clear();
        }
        match mutation {
            Some(BrokenRule::ManyLosses) => nodes = (0..self.nodes).collect(),
            Some(BrokenRule::EarlyAnswers) => return self.forget().await,
            _ => {}
        }
        join_all(nodes.into_iter().map(|node| self.misfortune(node))).await;
    }

    async fn misfortune(&self, node: usize) {
        let draw = |most| self.world.draw(|chance| chance.time(Duration::from_secs(most)));
        for _ in 0..self.world.draw(|chance| 1 + chance.below(2)) {
            sleep(draw(60)).await;
            match self.world.draw(|chance| chance.percent(50)) {
                true => self.world.lose(node, Duration::from_secs(3) + draw(100)).await,
                false => self.world.rot(node, self.losses + 1),
            }
        }
    }

    /// Lets all nodes forget what they acknowledged last.
    async fn forget(&self) {
        sleep(self.world.draw(|chance| chance.time(Duration::from_secs(60)))).await;
        let mut state = self.world.state();
        state.disks.iter_mut().for_each(|disk| disk.forget(Duration::from_secs(10)));
    }

    /// Asks what must be true when all is over.
    async fn end(&self) {
        if !self.world.state().weather.is_everywhere {
            // The faulty nodes are as good as lost.
            let faulty = self.world.state().weather.faulty.clone();
            self.read_without(&faulty, "without the faulty nodes").await;
        }
        self.world.calm();
        // Until the last request has happened, and heartbeats and claims are void.
        sleep(Duration::from_secs(3 * 3600)).await;
        let doctor = self.open(self.world.start_process(None).0);
        for node in self.world.unmarked() {
            if let Err(error) = doctor.fill(&format!("n{node}")).await {
                self.history().flaw(format!("filling n{node}: {error}"));
            }
        }
        self.read_all(&doctor, "at the end").await;
        for name in 0..self.names {
            self.repair(&doctor, name).await;
        }
        self.read_all(&doctor, "after repair").await;
        if self.world.draw(|chance| chance.percent(33)) {
            self.expect_clean(&doctor).await;
        }
        let lost = self.world.draw(|chance| chance.some_of(self.nodes, self.losses));
        self.read_without(&lost, "after as many losses as may be").await;
    }

    /// Reads everything, each name by the rule of a regular register.
    async fn read_all(&self, volume: &Volume, when: &str) {
        for name in 0..self.names {
            if let Err(error) = self.get(volume, name).await {
                self.history().flaw(format!("{}, {when}: {:?} {error}", text(name), error.kind()));
            }
        }
    }

    /// Reads everything while some nodes are silent.
    async fn read_without(&self, nodes: &[usize], when: &str) {
        let set = |is_down: bool| {
            let mut state = self.world.state();
            nodes
                .iter()
                .map(|&node| std::mem::replace(&mut state.disks[node].is_down, is_down))
                .collect()
        };
        let before: Vec<bool> = set(true);
        self.read_all(&self.open(self.world.start_process(None).0), when).await;
        let mut state = self.world.state();
        for (&node, was_down) in nodes.iter().zip(before) {
            state.disks[node].is_down = was_down;
        }
    }

    /// Repairs a name, after which nothing may be wrong with it.
    async fn repair(&self, doctor: &Volume, number: usize) {
        let object = name(number);
        let mut repaired = doctor.repair(&object, true).await;
        // A deletion that takes longer than a few seconds is given up, and is owed.
        for _ in 0..2 {
            if repaired.as_ref().is_ok_and(|repaired| repaired.is_owed) {
                repaired = doctor.repair(&object, true).await;
            }
        }
        let flaw = match repaired {
            Ok(repaired) if repaired.is_owed => Some(format!("repair owes: {:?}", repaired.flaws)),
            Err(error) if error.kind() != ErrorKind::NotFound => Some(format!("repair: {error}")),
            _ => None,
        };
        let verdict = match doctor.verify(&object, true).await {
            Ok(verdict) if verdict.state != State::Intact => Some(format!("{verdict:?}")),
            Err(error) if error.kind() != ErrorKind::NotFound => Some(format!("verify: {error}")),
            _ => None,
        };
        for flaw in flaw.into_iter().chain(verdict) {
            self.history().flaw(format!("{} at the end: {flaw}", text(number)));
        }
    }

    /// Checks that days later no files of finished work are left. Uploads that no client continues
    /// are given up after a week.
    async fn expect_clean(&self, doctor: &Volume) {
        sleep(Duration::from_secs(9 * 24 * 3600)).await;
        if let Err(error) = self.keep(doctor).await {
            self.history().flaw(format!("days later: {:?} {error}", error.kind()));
        }
        let mut counts = BTreeSet::new();
        let objects = (0..self.names).map(name).chain(self.pieces_in_use(doctor).await);
        for object in objects {
            let found = doctor.find(&object, Default::default()).await;
            counts.extend(found.ok().map(|found| found.listed().version.object));
        }
        let state = self.world.state();
        for (node, disk) in state.disks.iter().enumerate() {
            let is_left = |path: &&str| match names::parse_part(path) {
                Some(part) => !counts.contains(&part.object),
                None => [names::RUNNING, names::OWED, names::LOST]
                    .iter()
                    .any(|folder| path.starts_with(folder)),
            };
            for path in disk.paths().filter(is_left) {
                self.history().flaw(format!("days later, node {node} still has {path}"));
            }
        }
    }

    /// Does the work of a keeper.
    async fn keep(&self, doctor: &Volume) -> Result<()> {
        for _ in 0..2 {
            let mut scrub = doctor.scrub().await?;
            while scrub.next().await.is_some() {}
            doctor.collect().await?;
        }
        // A repair gives up a deletion that takes longer than a few seconds, and leaves it to the
        // next round.
        for _ in 0..3 {
            for name in doctor.owed("").await {
                doctor.repair(&name, false).await?;
            }
        }
        self.expect_no_uploads(doctor).await
    }
}
