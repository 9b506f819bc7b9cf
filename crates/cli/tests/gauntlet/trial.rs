//! One trial: a folder of shards in some state, and the results of decode, verify and repair.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{Run, exit, names, run, snapshot};
use crate::damage::{Damage, Effect};
use crate::specimen::Specimen;

/// The result of a check; the error describes the mistake that was found.
pub type Check = Result<(), String>;

macro_rules! ensure {
    ($holds:expr, $($message:tt)+) => {
        if !$holds {
            return Err(format!($($message)+));
        }
    };
}

/// The expected end of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Every shard is there and whole, under any name.
    Intact,
    Repairable,
    Lost,
    /// Every block is right, but the object is not the one that was encoded.
    CheckFailed,
    NotRecognised,
    /// The object is recoverable or lost, depending on the damaged lanes, but all commands agree.
    Unsure,
}

/// Damage to a shard, and its offset in the file.
#[derive(Debug, Clone, Copy)]
pub struct Blow {
    pub shard: usize,
    pub damage: Damage,
    pub offset: usize,
}

/// A folder of shards in some state.
pub struct Trial<'a> {
    pub specimen: &'a Specimen,
    /// The folder that holds the folders `shards` and `out`.
    pub yard: &'a Path,
    /// The paths to search for shards; without any, the whole folder.
    pub paths: Vec<PathBuf>,
    /// The value of `--object`.
    pub object: Option<&'a str>,
    pub expect: Expect,
    /// All damage, if it is known shard by shard.
    pub blows: Option<Vec<Blow>>,
    /// Whether the trial reads JSON, instead of the text for people.
    pub json: bool,
    /// Whether the trial verifies again after the repair, although the shards have their old bytes.
    pub thorough: bool,
}

impl Trial<'_> {
    /// Runs decode, verify and repair.
    pub fn run(&self) -> Check {
        let before = snapshot(&self.shards());
        let recovered = self.decode().map_err(|error| format!("decode: {error}"))?;
        ensure!(snapshot(&self.shards()) == before, "decode changed the shards");
        self.verify(recovered).map_err(|error| format!("verify: {error}"))?;
        ensure!(snapshot(&self.shards()) == before, "verify changed the shards");
        self.repair(recovered, &before).map_err(|error| format!("repair: {error}"))
    }

    fn shards(&self) -> PathBuf {
        self.yard.join("shards")
    }

    fn command(&self, command: &str, more: &[OsString]) -> Run {
        let mut arguments = args![command].to_vec();
        match self.paths.is_empty() {
            true => arguments.push(self.shards().into()),
            false => arguments.extend(self.paths.iter().map(OsString::from)),
        }
        arguments.extend(self.object.iter().flat_map(|object| args!["--object", object]));
        arguments.extend(self.json.then(|| "--json".into()));
        arguments.extend_from_slice(more);
        run(arguments)
    }

    /// Checks the exit code. `fine` are the codes for an intact and for a repairable object.
    fn check_code(&self, run: &Run, fine: [i32; 2], lost: i32, check_failed: i32) -> Check {
        let right = match self.expect {
            Expect::Intact => run.code == fine[0],
            Expect::Repairable => run.code == fine[1],
            Expect::Lost => run.code == lost,
            Expect::CheckFailed => run.code == check_failed,
            Expect::NotRecognised => run.code == exit::NOT_RECOGNISED,
            Expect::Unsure => run.code == fine[1] || run.code == lost,
        };
        ensure!(right, "{:?} was expected\n{run}", self.expect);
        Ok(())
    }

    /// Decodes, and returns whether that succeeded.
    fn decode(&self) -> Result<bool, String> {
        let folder = self.yard.join("out");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        let out = folder.join("out");
        let run = self.command("decode", &args!["--out", &out, "--no-sync"]);
        self.check_code(&run, [exit::DONE; 2], exit::LOST, exit::CHECK_FAILED)?;
        let left = names(&folder);
        if run.code != exit::DONE {
            ensure!(left.is_empty(), "left {left:?} behind\n{run}");
            self.check_failure(&run)?;
            return Ok(false);
        }
        ensure!(left == ["out"], "left {left:?} behind\n{run}");
        ensure!(fs::read(&out).unwrap() == self.specimen.content, "WRONG BYTES\n{run}");
        self.check_decode_report(&run)?;
        Ok(true)
    }

    fn check_decode_report(&self, run: &Run) -> Check {
        self.check_warnings(run)?;
        let gone = self.blows().filter(|blow| blow.damage.effect() == Effect::Gone);
        if self.json {
            let result = run.result();
            let digest = blake3::hash(&self.specimen.content).to_hex();
            ensure!(result["digest"] == digest.as_str(), "another digest\n{run}");
            ensure!(result["object"] == self.specimen.id.as_str(), "another object\n{run}");
            for Blow { shard, .. } in gone {
                let entry = entries(&result["shards"], *shard).next();
                ensure!(
                    entry.is_some_and(|entry| entry["state"] == "missing"),
                    "does not miss shard {shard}\n{run}"
                );
            }
            return Ok(());
        }
        for Blow { shard, .. } in gone {
            let line = format!("shard {shard} was missing");
            ensure!(run.text().contains(&line), "does not say: {line}\n{run}");
        }
        Ok(())
    }

    fn verify(&self, recovered: bool) -> Check {
        let run = self.command("verify", &[]);
        self.check_code(&run, [exit::DONE, exit::REPAIRABLE], exit::LOST, exit::LOST)?;
        if self.expect == Expect::NotRecognised {
            return self.check_failure(&run);
        }
        let agrees = recovered == (run.code != exit::LOST);
        ensure!(agrees, "decode recovered: {recovered}, but verify\n{run}");
        self.check_warnings(&run)?;
        if self.json { self.check_verify_json(&run) } else { self.check_verify_text(&run) }
    }

    fn check_verify_json(&self, run: &Run) -> Check {
        let results = run.results();
        let result = results.iter().find(|result| result["object"] == self.specimen.id.as_str());
        let Some(result) = result else { return Err(format!("not our object\n{run}")) };
        let status = ["intact", "repairable", "lost"][run.code as usize];
        ensure!(result["status"] == status, "status is not {status}\n{run}");
        let ranges = result["lost_ranges"].as_array().ok_or("no lost_ranges")?;
        let legal = |range: &Value| {
            let (start, end) = (range["start"].as_u64(), range["end"].as_u64());
            start < end && end <= result["length"].as_u64()
        };
        ensure!(ranges.iter().all(legal), "lost ranges outside the object\n{run}");
        match self.expect {
            Expect::CheckFailed => ensure!(result["digest_ok"] == false, "digest right\n{run}"),
            _ if run.code == exit::LOST => ensure!(
                result["digest_ok"].is_null()
                    && result["tolerable_losses"] == 0
                    && result["reason"].is_string(),
                "does not say what is lost\n{run}"
            ),
            _ => {
                ensure!(result["digest_ok"] == true && ranges.is_empty(), "not right\n{run}");
                self.check_tolerance(result).map_err(|error| format!("{error}\n{run}"))?;
            }
        }
        self.check_shards(result).map_err(|error| format!("{error}\n{run}"))
    }

    /// Checks the remaining tolerance: exactly if whole shards are gone, otherwise within bounds.
    fn check_tolerance(&self, result: &Value) -> Check {
        let Some(blows) = self.blows.as_ref().filter(|_| !self.specimen.content.is_empty()) else {
            return Ok(());
        };
        let Some(stated) = result["tolerable_losses"].as_u64() else {
            return Err("no tolerable_losses".to_owned());
        };
        let parity = self.specimen.family.parity as u64;
        let gone = blows.iter().filter(|blow| blow.damage.effect() == Effect::Gone).count() as u64;
        let least = parity.saturating_sub(blows.len() as u64);
        let most = parity.saturating_sub(gone);
        ensure!((least..=most).contains(&stated), "{stated} losses are not tolerable");
        Ok(())
    }

    /// Checks that every damaged shard is named with file and offset, and no other.
    fn check_shards(&self, result: &Value) -> Check {
        let Some(blows) = &self.blows else { return Ok(()) };
        for (index, shard) in self.specimen.shards.iter().enumerate() {
            let mut found = entries(&result["shards"], index);
            let intact = found.clone().any(|entry| entry["state"] == "intact");
            let Some(blow) = blows.iter().find(|blow| blow.shard == index) else {
                ensure!(intact, "shard {index} is said not to be intact");
                continue;
            };
            let Some(entry) = found.next().filter(|_| !intact) else {
                return Err(format!("shard {index} is said to be intact"));
            };
            if blow.damage.effect() == Effect::Gone {
                ensure!(entry["state"] == "missing", "shard {index} is not said to be missing");
                continue;
            }
            let named = entry["path"]
                .as_str()
                .is_some_and(|path| Path::new(path).file_name() == Some(shard.name.as_os_str()));
            let noted = entry["notes"].as_array().is_some_and(|notes| !notes.is_empty());
            ensure!(named && noted, "shard {index}: {:?} is not described", blow.damage);
            if blow.damage.is_flip_in_blocks() {
                let longest_lane = self.specimen.block(index, 0).len() as u64;
                let distance = entry["first_bad_offset"]
                    .as_u64()
                    .and_then(|start| (blow.offset as u64).checked_sub(start));
                ensure!(
                    entry["bad_lanes"] == 1 && distance.is_some_and(|d| d < longest_lane),
                    "shard {index}: the byte at {} is not located",
                    blow.offset
                );
            }
        }
        Ok(())
    }

    fn check_verify_text(&self, run: &Run) -> Check {
        let text = run.text();
        ensure!(text.contains(&self.specimen.name), "does not name the object\n{run}");
        let tolerance = text.contains(" tolerable");
        ensure!(tolerance == (run.code < exit::LOST), "tolerance?\n{run}");
        for Blow { shard, damage, .. } in self.blows() {
            let line = match damage.effect() {
                Effect::Gone => format!("shard {shard} is missing"),
                _ => format!("shard {shard}: "),
            };
            let text = text.replace(" (stage 2)", "");
            ensure!(text.contains(&line), "does not say: {line}\n{run}");
            let located = !damage.is_flip_in_blocks() || text.contains(" at offset ");
            ensure!(located, "does not say where\n{run}");
        }
        Ok(())
    }

    fn repair(&self, recovered: bool, before: &BTreeMap<OsString, Vec<u8>>) -> Check {
        let names_before = names(&self.shards());
        let run = self.command("repair", &args!["--no-sync"]);
        self.check_code(&run, [exit::DONE; 2], exit::LOST, exit::CHECK_FAILED)?;
        ensure!(recovered == (run.code == exit::DONE), "decode recovered: {recovered}\n{run}");
        let (after, names_after) = (snapshot(&self.shards()), names(&self.shards()));
        if run.code != exit::DONE || self.expect == Expect::Intact {
            ensure!(&after == before && names_after == names_before, "changed something\n{run}");
        }
        if run.code != exit::DONE {
            return self.check_failure(&run);
        }
        let appeared = |name: &&OsString| {
            !names_before.contains(name)
                && !self.specimen.shards.iter().any(|shard| shard.name == **name)
                && !name.to_string_lossy().ends_with("-2.paritas")
                && !name.to_string_lossy().contains(".paritas.damaged-")
        };
        let strange = names_after.iter().find(appeared);
        ensure!(strange.is_none(), "made {strange:?}\n{run}");
        self.check_repaired(&run, &after)?;
        if !self.thorough {
            return Ok(());
        }
        let run = self.command("verify", &[]);
        ensure!(run.code == exit::DONE, "not intact after the repair\n{run}");
        Ok(())
    }

    /// Checks that every shard is byte for byte as it was written, in its own place unless that is
    /// taken.
    fn check_repaired(&self, run: &Run, after: &BTreeMap<OsString, Vec<u8>>) -> Check {
        for (index, shard) in self.specimen.shards.iter().enumerate() {
            let there = after.values().any(|bytes| bytes == &shard.bytes);
            ensure!(there, "shard {index} is not as it was\n{run}");
            let in_place = after.get(&shard.name) == Some(&shard.bytes);
            let place_is_taken = |blow: &Blow| {
                blow.shard == index
                    && blow.damage.effect() == Effect::Gone
                    && blow.damage != Damage::Delete
            };
            let excused = self.blows.is_none() || self.blows().any(place_is_taken);
            ensure!(in_place || excused, "shard {index} is not in its place\n{run}");
        }
        if let (true, Some(blows)) = (self.json, &self.blows) {
            let result = run.result();
            let repaired = result["repaired"].as_array().ok_or("no repaired")?;
            let mut indices: Vec<u64> =
                repaired.iter().filter_map(|shard| shard["index"].as_u64()).collect();
            indices.sort_unstable();
            let mut hit: Vec<u64> = blows.iter().map(|blow| blow.shard as u64).collect();
            hit.sort_unstable();
            ensure!(indices == hit, "repaired {indices:?}, not {hit:?}\n{run}");
        }
        Ok(())
    }

    /// Checks that a failure names the object and what is missing or wrong.
    fn check_failure(&self, run: &Run) -> Check {
        let message = match self.json {
            true => run.error()["message"].as_str().unwrap_or_default().to_owned(),
            false => run.stderr.clone(),
        };
        ensure!(self.json || message.contains("paritas: "), "not our message\n{run}");
        let says = |text: &str| message.contains(text);
        let good = match run.code {
            exit::NOT_RECOGNISED => says("shards"),
            exit::CHECK_FAILED => says("digest") && says(&self.specimen.name),
            _ => {
                says(&self.specimen.name)
                    && (says("footer") || says("bytes ") && says("are enough"))
            }
        };
        ensure!(good, "an unhelpful message\n{run}");
        let twice = format!("{0}: {0}:", self.specimen.name);
        ensure!(!says(&twice), "a name that is said twice\n{run}");
        let all_gone = self.blows().all(|blow| blow.damage.effect() == Effect::Gone);
        if let (Some(blows), exit::LOST, true) = (&self.blows, run.code, all_gone) {
            let shards = self.specimen.family.shards();
            let left = format!("{} of {shards} shards", shards - blows.len());
            ensure!(says(&left), "does not say: {left}\n{run}");
        }
        self.check_warnings(run)
    }

    /// Checks that files with the name of a shard that are not shards cause a warning.
    fn check_warnings(&self, run: &Run) -> Check {
        for blow in self.blows().filter(|blow| blow.damage.effect() == Effect::Gone) {
            let name = self.specimen.shards[blow.shard].name.to_string_lossy();
            let gone = matches!(blow.damage, Damage::Delete | Damage::Directory);
            ensure!(gone || run.stderr.contains(&*name), "does not warn of {name}\n{run}");
        }
        Ok(())
    }

    fn blows(&self) -> impl Iterator<Item = &Blow> {
        self.blows.iter().flatten()
    }
}

/// Returns the entries about one shard.
fn entries(shards: &Value, index: usize) -> impl Iterator<Item = &Value> + Clone {
    shards.as_array().into_iter().flatten().filter(move |shard| shard["index"] == index as u64)
}

/// Renames a file within a folder.
pub fn rename(folder: &Path, from: &OsStr, to: &OsStr) {
    assert!(!folder.join(to).exists() || from == to);
    fs::rename(folder.join(from), folder.join(to)).unwrap();
}

/// Returns the folder of the shards.
pub fn shards(yard: &Path) -> PathBuf {
    yard.join("shards")
}

/// Writes some shards of another object into our folder: those for whose index `only` is true.
pub fn add(specimen: &Specimen, folder: &Path, only: impl Fn(usize) -> bool) {
    for (index, (name, bytes)) in specimen.files().into_iter().enumerate() {
        if only(index) {
            fs::write(folder.join(name), bytes).unwrap();
        }
    }
}

/// Checks that a run failed with this code and that its message contains all texts of `mentions`.
pub fn refuses(run: &Run, code: i32, mentions: &[&str]) -> Check {
    ensure!(run.code == code, "exit {code} was expected\n{run}");
    let missing = mentions.iter().find(|text| !run.stderr.contains(**text));
    ensure!(missing.is_none(), "does not mention {missing:?}\n{run}");
    Ok(())
}
