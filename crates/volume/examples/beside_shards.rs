//! Times puts and gets of a volume over folders beside encoding to and decoding from shard files.
//!
//! ```text
//! cargo run --release -p paritas-volume --example beside_shards -- FOLDER [MEBIBYTES] [ROUNDS]
//! ```
//!
//! FOLDER should be on tmpfs, so that no disk takes part. Each round takes one sample of either
//! side, back to back in alternating order; the ratio of each pair counts. What comes back is
//! compared with what went in before a time counts.

use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use paritas_shards::{EncodeJob, FileTarget, decode, encode, scan};
use paritas_volume::node::{FolderNode, Node};
use paritas_volume::{GetOptions, Member, ObjectName, PutOptions, Setup, Volume, run};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let folder = PathBuf::from(arguments.first().ok_or("FOLDER must be given")?);
    let number = |at: usize, usual: usize| arguments.get(at).map_or(Ok(usual), |text| text.parse());
    let (mebibytes, rounds) = (number(1, 256)?, number(2, 10)?);
    let folder = tempfile::tempdir_in(folder)?;
    let source = folder.path().join("source");
    write_source(&source, mebibytes)?;
    for spec in ["4+2", "10+4"] {
        let pair = Pair::new(folder.path(), &source, spec)?;
        pair.check()?;
        pair.time("put beside encode", rounds, Pair::put, Pair::encode)?;
        pair.time("get beside decode", rounds, Pair::get, Pair::decode)?;
    }
    Ok(())
}

fn write_source(path: &Path, mebibytes: usize) -> Outcome<()> {
    let mut file = std::fs::File::create(path)?;
    for block in 0..mebibytes as u64 {
        let mut bytes = vec![0; 1 << 20];
        blake3::Hasher::new().update(&block.to_le_bytes()).finalize_xof().fill(&mut bytes);
        file.write_all(&bytes)?;
    }
    Ok(())
}

/// A volume and a folder of shards, of one code and one source.
struct Pair<'a> {
    source: &'a Path,
    spec: &'a str,
    shards: PathBuf,
    target: PathBuf,
    volume: Volume,
    name: ObjectName,
}

impl<'a> Pair<'a> {
    fn new(folder: &Path, source: &'a Path, spec: &'a str) -> Outcome<Self> {
        let root = folder.join(spec);
        let shards = root.join("shards");
        std::fs::create_dir_all(&shards)?;
        let code = paritas::Code::new(&spec.parse()?)?;
        let mut nodes: Vec<(Member, Arc<dyn Node>)> = Vec::new();
        for disk in 0..code.node_count() {
            let name = format!("disk{disk}");
            std::fs::create_dir(root.join(&name))?;
            let node: Arc<dyn Node> = Arc::new(FolderNode::new(&name, root.join(&name), false));
            nodes.push((Member { domain: name.clone(), name, is_drained: false }, node));
        }
        let volume = Volume::new(Setup::new("0".repeat(32), code, nodes))?;
        run(volume.mark_nodes())?;
        let (target, name) = (folder.join("target"), ObjectName::new("object")?);
        Ok(Self { source, spec, shards, target, volume, name })
    }

    fn check(&self) -> Outcome<()> {
        let expected = blake3::hash(&std::fs::read(self.source)?);
        for (store, fetch) in [
            (Self::put as fn(&Self) -> Outcome<()>, Self::get as fn(&Self) -> Outcome<()>),
            (Self::encode, Self::decode),
        ] {
            store(self)?;
            fetch(self)?;
            if blake3::hash(&std::fs::read(&self.target)?) != expected {
                return Err("what came back differs from the source".into());
            }
        }
        Ok(())
    }

    fn put(&self) -> Outcome<()> {
        let source = std::fs::File::open(self.source)?;
        let mut options = PutOptions::default();
        options.length = Some(source.metadata()?.len());
        run(self.volume.put(&self.name, source, options))?;
        Ok(())
    }

    fn get(&self) -> Outcome<()> {
        let mut target = std::fs::File::create(&self.target)?;
        let options = GetOptions::default();
        run(self.volume.get(&self.name, None, &mut target, options, &|_| {}))?;
        Ok(())
    }

    fn encode(&self) -> Outcome<()> {
        let source = std::fs::File::open(self.source)?;
        let code = paritas::Code::new(&self.spec.parse()?)?;
        let mut job = EncodeJob::new(code, "object", vec![self.shards.clone()]);
        (job.sync, job.force) = (false, true);
        job.length_hint = Some(source.metadata()?.len());
        encode(&job, source, &|_| {})?;
        Ok(())
    }

    fn decode(&self) -> Outcome<()> {
        let inventory = scan(std::slice::from_ref(&self.shards));
        let target = FileTarget::new(&self.target).force(true).sync(false);
        decode(&inventory.objects[0], target, None, &|_| {})?;
        Ok(())
    }

    /// Prints how many times as fast `ours` is as `base`: the median of all pairs, and their span.
    fn time(
        &self,
        what: &str,
        rounds: usize,
        ours: fn(&Self) -> Outcome<()>,
        base: fn(&Self) -> Outcome<()>,
    ) -> Outcome<()> {
        let sample = |act: fn(&Self) -> Outcome<()>| -> Outcome<f64> {
            let begun = Instant::now();
            act(self)?;
            Ok(begun.elapsed().as_secs_f64())
        };
        let mut ratios = Vec::new();
        let mut seconds = Vec::new();
        for round in 0..rounds {
            let (mine, other) = match round % 2 {
                0 => (sample(ours)?, sample(base)?),
                _ => {
                    let other = sample(base)?;
                    (sample(ours)?, other)
                }
            };
            ratios.push(other / mine);
            seconds.push(mine);
        }
        ratios.sort_by(f64::total_cmp);
        seconds.sort_by(f64::total_cmp);
        println!(
            "{}: {what}: {:.2} times as fast ({:.2} to {:.2}), {:.3} s",
            self.spec,
            ratios[rounds / 2],
            ratios[0],
            ratios[rounds - 1],
            seconds[rounds / 2]
        );
        Ok(())
    }
}
