//! What a client does: it opens the volume, works, is stopped or killed, and begins again.

use std::io::Cursor;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use paritas::Code;
use paritas_store::error::{Error, ErrorKind, Result};
use tokio::time::sleep;

use super::clock::by_clock;
use super::history::{Act, History};
use super::shared::{SharedUploads, content};
use super::world::{BrokenRule, SimulatedWorld};
use crate::found::GetOptions;
use crate::names::ObjectName;
use crate::put::PutOptions;
use crate::volume::Volume;

/// Names of objects.
pub const NAMES: [&str; 2] = ["a", "b/c"];

/// The volume of a run, its clients' history, and what they may rely on.
pub struct Scene {
    pub world: Arc<SimulatedWorld>,
    pub code: Code,
    pub nodes: usize,
    pub losses: usize,
    /// The jobs that clients choose from, and the number of names. The fewer there are, the more
    /// often jobs of one kind meet.
    pub jobs: Vec<ClientJob>,
    pub names: usize,
    pub history: Mutex<History>,
    pub uploads: Mutex<SharedUploads>,
}

/// What a job is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientJob {
    PutSmall,
    PutLarge,
    PutPieces,
    PutPiece,
    CompleteUpload,
    GiveUp,
    Race,
    Get,
    Remove,
    Repair,
    RepairDeeply,
    Promote,
    Reencode,
    List,
    Verify,
    Collect,
    Status,
    Fill,
}

/// Jobs about whole objects.
pub const JOBS: [ClientJob; 20] = [
    ClientJob::PutSmall,
    ClientJob::PutSmall,
    ClientJob::PutSmall,
    ClientJob::PutLarge,
    ClientJob::PutLarge,
    ClientJob::PutLarge,
    ClientJob::Get,
    ClientJob::Get,
    ClientJob::Get,
    ClientJob::Get,
    ClientJob::Remove,
    ClientJob::Remove,
    ClientJob::Repair,
    ClientJob::RepairDeeply,
    ClientJob::Promote,
    ClientJob::Reencode,
    ClientJob::List,
    ClientJob::Verify,
    ClientJob::Collect,
    ClientJob::Status,
];

/// Jobs about objects in pieces, and others that these may meet.
pub const UPLOAD_JOBS: [ClientJob; 17] = [
    ClientJob::PutPieces,
    ClientJob::PutPieces,
    ClientJob::PutPiece,
    ClientJob::PutPiece,
    ClientJob::CompleteUpload,
    ClientJob::CompleteUpload,
    ClientJob::GiveUp,
    ClientJob::Race,
    ClientJob::Race,
    ClientJob::Race,
    ClientJob::Get,
    ClientJob::Get,
    ClientJob::PutSmall,
    ClientJob::Remove,
    ClientJob::Repair,
    ClientJob::Reencode,
    ClientJob::Collect,
];

/// Returns the name of an object as text.
pub fn text(number: usize) -> &'static str {
    NAMES[number]
}

/// Returns the name of an object.
pub fn name(number: usize) -> ObjectName {
    ObjectName::new(text(number)).expect("a valid name")
}

impl Scene {
    pub fn history(&self) -> std::sync::MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Opens the volume as a process does.
    pub fn open(&self, process: usize) -> Volume {
        let mut volume = self.world.open(process, &self.code, self.losses);
        let quorum = &mut volume.cluster.quorum;
        let (read, write) = (quorum.to_read(), quorum.to_write());
        match self.world.state().mutation {
            Some(BrokenRule::SmallWrites) => *quorum = quorum.broken(read, write - 1),
            Some(BrokenRule::SmallReads) => *quorum = quorum.broken(read - 1, write),
            _ => {}
        }
        volume
    }

    /// Lives through a round of a client: some processes, one after the other.
    pub async fn live(&self, ahead: i64) {
        for _ in 0..self.world.draw(|chance| 1 + chance.below(2)) {
            let think = self.world.draw(|chance| chance.time(Duration::from_secs(20)));
            sleep(think).await;
            by_clock(ahead, self.process()).await;
        }
    }

    /// Works until all is done, or until a random moment.
    async fn process(&self) {
        let (threads, stop, requests) = self.world.draw(|chance| {
            let stop = chance.percent(15).then(|| chance.time(Duration::from_secs(30)));
            let most = 2 << chance.below(8);
            let requests = chance.percent(30).then(|| 7 + chance.below(most));
            (1 + chance.below(2), stop, requests)
        });
        let (process, killed) = self.world.start_process(requests);
        let volume = self.open(process);
        let work = join_all((0..threads).map(|_| self.work(&volume)));
        tokio::select! {
            biased;
            _ = work => {}
            () = killed.notified() => {}
            // If work is given up, its tasks that remove what it has begun go on.
            () = sleep(stop.unwrap_or(Duration::MAX)), if stop.is_some() => {}
        }
    }

    async fn work(&self, volume: &Volume) {
        for _ in 0..self.world.draw(|chance| 1 + chance.below(3)) {
            let (job, name, number) = self.world.draw(|chance| {
                (
                    chance.choose(&self.jobs),
                    chance.below(self.names as u64) as usize,
                    chance.number(),
                )
            });
            let job = match self.world.unmarked().is_empty() {
                false if number.is_multiple_of(4) => ClientJob::Fill,
                _ => job,
            };
            self.world.note(&format!("{job:?} {name}"));
            let done = self.act(volume, job, name, number).await;
            let told = done.as_ref().map_or_else(ToString::to_string, |()| "done".to_owned());
            self.world.note(&format!("{job:?} {name}: {told}"));
            let kind =
                done.as_ref().map_or_else(|it| format!("{:?}", it.kind()), |()| "done".into());
            self.history().reached.insert(format!("{job:?}: {kind}"));
            if let Err(error) = done {
                self.judge(job, name, &error);
            }
        }
    }

    /// Notes an error that must not be: while no more nodes fail than may be lost, everything
    /// works.
    fn judge(&self, job: ClientJob, name: usize, error: &Error) {
        let is_excused = match job {
            ClientJob::Collect | ClientJob::Fill | ClientJob::Status => true,
            // A small object has no later stage.
            ClientJob::Promote if error.kind() == ErrorKind::Parameters => true,
            _ if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Busy) => true,
            // The only manifest of a version that was not acknowledged may be garbled each time.
            _ => error.kind() != ErrorKind::TooFewNodes && self.history().is_open(name),
        };
        if !is_excused && !self.world.state().weather.is_everywhere {
            self.history().flaw(format!("{job:?} {}: {:?} {error}", text(name), error.kind()));
        }
    }

    async fn act(&self, volume: &Volume, job: ClientJob, name: usize, number: u64) -> Result<()> {
        let object = self::name(name);
        match job {
            ClientJob::PutSmall => self.put(volume, name, number, 8 + number % 100).await,
            ClientJob::PutLarge => self.put(volume, name, number, 201 + number % 3000).await,
            ClientJob::PutPieces => self.put_pieces(volume, name, number).await,
            ClientJob::PutPiece => self.put_piece(volume, name, number).await,
            ClientJob::CompleteUpload => self.complete_upload(volume, name).await,
            ClientJob::GiveUp => self.give_up(volume, name).await,
            ClientJob::Race => self.race(volume, name, number).await,
            ClientJob::Get => self.get(volume, name).await,
            ClientJob::Remove => self.remove(volume, name).await,
            ClientJob::Repair => volume.repair(&object, false).await.map(drop),
            ClientJob::RepairDeeply => volume.repair(&object, true).await.map(drop),
            ClientJob::Promote => volume.promote(&object).await.map(drop),
            ClientJob::Reencode => volume.reencode(&object).await.map(drop),
            ClientJob::List => self.list(volume).await,
            ClientJob::Verify => volume.verify(&object, number.is_multiple_of(2)).await.map(drop),
            ClientJob::Collect => volume.collect().await.map(drop),
            ClientJob::Status => volume.status().await.map(drop),
            ClientJob::Fill => match self.world.unmarked().first() {
                Some(node) => volume.fill(&format!("n{node}")).await.map(drop),
                None => Ok(()),
            },
        }
    }

    async fn put(&self, volume: &Volume, name: usize, number: u64, length: u64) -> Result<()> {
        let deed = self.history().begin(name, Act::Put(number, None));
        let source = Cursor::new(content(number, length));
        // A put of known length sends each shard at once, and asks for versions once.
        let length = (!number.is_multiple_of(3)).then_some(length);
        let mut options = PutOptions { length, ..PutOptions::default() };
        if number.is_multiple_of(4) {
            options.overview = volume.overview_to_put("", NAMES.len()).await.map(Arc::new);
            // Other puts come first.
            let busy = self.world.draw(|chance| chance.time(Duration::from_secs(20)));
            sleep(busy).await;
        }
        let report = volume.put(&self::name(name), source, options).await?;
        self.history().end(deed, Act::Put(number, Some(report.listed)));
        Ok(())
    }

    async fn remove(&self, volume: &Volume, name: usize) -> Result<()> {
        let deed = self.history().begin(name, Act::Remove(None));
        match volume.remove(&self::name(name)).await {
            Ok(report) => self.history().end(deed, Act::Remove(Some(report.listed))),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.history().end(deed, Act::Read(None));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Reads an object, and notes what is read.
    pub async fn get(&self, volume: &Volume, name: usize) -> Result<()> {
        let (begun, mut bytes) = (self.history().now(), Vec::new());
        let options = GetOptions::default();
        match volume.get(&self::name(name), None, &mut bytes, options, &|_| {}).await {
            Ok(found) => {
                let number = self.number_of(&bytes);
                let mut history = self.history();
                if number.is_none() || found.length() != bytes.len() as u64 {
                    history.flaw(format!("{}: wrong bytes are read", text(name)));
                }
                history.saw(name, begun, Some((found.listed(), number)));
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.history().saw(name, begun, None);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn list(&self, volume: &Volume) -> Result<()> {
        let begun = self.history().now();
        let listing = volume.list("").await?;
        for name in 0..NAMES.len() {
            let listed = listing.objects.get(&self::name(name));
            self.history().saw(name, begun, listed.map(|listed| (*listed, None)));
        }
        Ok(())
    }
}
