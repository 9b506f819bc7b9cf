//! The gauntlet: every kind of damage, to objects of every awkward size, in every family, through
//! the real program. The result is the right bytes, or the documented exit code with a message that
//! says what is missing. It is never wrong bytes, a panic, or a partial file. Recoverable damage is
//! repaired, and then every shard has its old bytes again.

#[path = "../common/mod.rs"]
#[macro_use]
mod common;
mod damage;
mod specimen;
mod trial;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::common::{Chance, exit, run, say};
use crate::damage::{Damage, Effect, flip};
use crate::specimen::{Family, Specimen};
use crate::trial::{Blow, Check, Expect, Trial, add, refuses, rename, shards};

const CAUCHY: Family = Family::new("4+2", 4, 2, 1);
const WIDER_CAUCHY: Family = Family::new("cauchy:k=5,m=3", 5, 3, 1);
const RDP: Family = Family::new("rdp:k=4", 4, 2, 4);
const EVENODD: Family = Family::new("evenodd:k=3", 3, 2, 2);
const XCODE: Family = Family::new("xcode:n=5", 3, 2, 5);
/// Codes with stages, before an object is promoted and after.
const STAGE_ONE: Family = Family::new("bbdpg:k=4,m=1,m2=2", 4, 1, 2);
const STAGE_TWO: Family = Family::promoted("bbdpg:k=3,m=1,m2=3", 3, 3, 3);
const ISAL: Family = Family::new("isal-cauchy:k=3,m=2", 3, 2, 1);

/// An LT code of 22 data blocks with six blocks in a shard. Any four shards of this graph happen to
/// be enough, and three never are.
const LT: Family =
    Family::fitted("lt:k=22,n=36,nodes=6,c=0.03,variant=uniform,seed=85", 4, 2, 6, 22);

const SEED: u64 = 0x7061_7269_7461_7300;

/// Returns the length of a large file: many segments.
fn big() -> usize {
    if is_soak() { 50_000_000 } else { 10_000_000 }
}

/// Whether all trials are run, as in `scripts/test-soak`.
fn is_soak() -> bool {
    std::env::var_os("PARITAS_SOAK").is_some()
}

#[test]
fn cauchy_4_2() {
    Arena::new(CAUCHY, 1).all_sizes();
}

#[test]
#[ignore = "other codes are tried here; scripts/test-soak tries all"]
fn cauchy_5_3() {
    Arena::new(WIDER_CAUCHY, 2).usual_sizes();
}

#[test]
#[ignore = "other codes are tried here; scripts/test-soak tries all"]
fn rdp_4() {
    Arena::new(RDP, 3).usual_sizes();
}

#[test]
fn isal_cauchy_3_2() {
    Arena::new(ISAL, 7).usual_sizes();
}

#[test]
#[ignore = "other codes are tried here; scripts/test-soak tries all"]
fn evenodd_3() {
    Arena::new(EVENODD, 4).usual_sizes();
}

#[test]
#[ignore = "other codes are tried here; scripts/test-soak tries all"]
fn xcode_5() {
    Arena::new(XCODE, 8).usual_sizes();
}

#[test]
#[ignore = "other codes are tried here; scripts/test-soak tries all"]
fn dpg_4_1() {
    Arena::new(STAGE_ONE, 9).some_sizes();
}

#[test]
fn dpg_3_3() {
    Arena::new(STAGE_TWO, 10).some_sizes();
}

#[test]
fn lt_22_36() {
    Arena::new(LT, 11).usual_sizes();
}

#[test]
fn a_large_file_of_cauchy() {
    Arena::new(CAUCHY, 5).big(&[Damage::Delete, Damage::Insert, Damage::FlipBlocks]);
}

#[test]
#[ignore = "other codes are tried here; scripts/test-soak tries all"]
fn a_large_file_of_rdp() {
    Arena::new(RDP, 6).big(&[Damage::Remove, Damage::Prepend]);
}

/// Runs the trials of one family, and counts their failures.
struct Arena {
    family: Family,
    segment: usize,
    chance: Chance,
    yard: TempDir,
    tried: usize,
    failed: usize,
    /// The first failure of each sort.
    failures: BTreeMap<String, String>,
}

/// The conditions of a trial, besides its expectation.
#[derive(Default)]
struct Setting<'a> {
    blows: Option<Vec<Blow>>,
    object: Option<&'a str>,
    paths: Vec<PathBuf>,
    hasty: bool,
}

impl Arena {
    fn new(family: Family, number: u64) -> Self {
        Self {
            family,
            segment: family.segment(),
            chance: Chance(SEED + number),
            yard: tempfile::tempdir().unwrap(),
            tried: 0,
            failed: 0,
            failures: BTreeMap::new(),
        }
    }

    fn all_sizes(mut self) {
        let segment = self.segment;
        let few = [0, segment + 1];
        let more = [1, 63, 64, 65, segment - 1, segment, (1 << 20) + 7];
        let more = if is_soak() { &more[..] } else { &[] };
        for &size in few.iter().chain(more) {
            let specimen = self.specimen(size, "specimen.bin");
            self.every_damage(&specimen);
            self.names_and_copies(&specimen);
            self.other_objects(&specimen);
            self.spread_damage(&specimen);
            self.forged_totals(&specimen);
            self.everything_gone(&specimen);
        }
        // Otherwise the library's test of every flipped byte is enough.
        if is_soak() {
            let smallest = self.specimen(1, "smallest");
            self.every_offset(&smallest);
        }
        self.finish();
    }

    /// Tries all sizes in the soak test, and otherwise some: the file format is the same for all
    /// codes.
    fn usual_sizes(self) {
        if is_soak() { self.all_sizes() } else { self.some_sizes() }
    }

    /// Tries all kinds of damage, and a few other trials, at some sizes.
    fn some_sizes(mut self) {
        let (few, more) = ([0, self.segment], [1, (1 << 20) + 7]);
        let more = if is_soak() { &more[..] } else { &[] };
        for &size in few.iter().chain(more) {
            let specimen = self.specimen(size, "specimen.bin");
            self.every_damage(&specimen);
            self.spread_damage(&specimen);
            self.forged_totals(&specimen);
            self.everything_gone(&specimen);
        }
        self.finish();
    }

    fn big(mut self, kinds: &[Damage]) {
        let specimen = self.specimen(big(), "big.bin");
        for &damage in kinds {
            self.strike(&specimen, damage, self.family.parity);
        }
        self.scattered(&specimen);
        self.segment_wiped(&specimen, self.family.parity + 1, Expect::Lost);
        self.finish();
    }

    fn finish(self) {
        let Self { family, tried, failed, failures, .. } = self;
        say(&format!("gauntlet {}: {tried} cases, {failed} failed", family.spec));
        let shown = failures.into_values().collect::<Vec<_>>().join("\n\n");
        assert!(failed == 0, "the first failure of each sort:\n{shown}");
    }

    fn specimen(&mut self, size: usize, name: &str) -> Specimen {
        Specimen::new(self.family, size, self.segment, name, &mut self.chance)
    }

    /// Returns a fresh folder with all shards.
    fn lay_out(&self, specimen: &Specimen) -> PathBuf {
        let folder = shards(self.yard.path());
        specimen.lay_out(&folder);
        folder
    }

    fn trial(&mut self, specimen: &Specimen, label: &str, expect: Expect, setting: Setting<'_>) {
        let trial = Trial {
            specimen,
            yard: self.yard.path(),
            paths: setting.paths,
            object: setting.object,
            expect,
            blows: setting.blows,
            json: self.tried.is_multiple_of(2),
            thorough: !setting.hasty,
        };
        let check = trial.run();
        self.record(specimen, label, check);
    }

    fn record(&mut self, specimen: &Specimen, label: &str, check: Check) {
        self.tried += 1;
        if let Err(error) = check {
            let (spec, size) = (self.family.spec, specimen.content.len());
            let sort = error.lines().next().unwrap_or_default().to_owned();
            self.failures
                .entry(sort)
                .or_insert_with(|| format!("## {spec}, {size} bytes, {label}: {error}"));
            self.failed += 1;
        }
    }

    /// Tries every kind of damage on one shard, on `parity` shards, and on one shard more. Sizes
    /// close to another size get only one of the three.
    fn every_damage(&mut self, specimen: &Specimen) {
        let counts = [1, self.family.parity, self.family.parity + 1];
        let size = specimen.content.len();
        let has_all = [0, 1, self.segment].contains(&size) || size > 1 << 20;
        for damage in Damage::ALL {
            if size == 0 && damage.needs_blocks() {
                continue;
            }
            let chosen = self.chance.within(0..counts.len());
            for (turn, &count) in counts.iter().enumerate() {
                if has_all || turn == chosen {
                    self.strike(specimen, damage, count);
                }
            }
        }
        for round in 0..4 {
            let count = self.family.parity + round % 2;
            self.strike_with(specimen, count, |chance| {
                loop {
                    let damage = Damage::ALL[chance.within(0..Damage::ALL.len())];
                    if !(specimen.content.is_empty() && damage.needs_blocks()) {
                        return damage;
                    }
                }
            });
        }
    }

    fn strike(&mut self, specimen: &Specimen, damage: Damage, count: usize) {
        self.strike_with(specimen, count, |_| damage);
    }

    fn strike_with(
        &mut self,
        specimen: &Specimen,
        count: usize,
        mut damage: impl FnMut(&mut Chance) -> Damage,
    ) {
        let folder = self.lay_out(specimen);
        let mut blows = Vec::new();
        // One file of stage 2 stays: without any, the object would be in stage 1.
        let shards = self.family.shards() - usize::from(self.family.promoted);
        for shard in self.chance.choose(count.min(shards), shards) {
            let damage = damage(&mut self.chance);
            let offset = damage.strike(&folder, specimen, shard, &mut self.chance);
            blows.push(Blow { shard, damage, offset });
        }
        let expect = self.expect(specimen, &blows);
        let label = format!("{blows:?}");
        self.trial(specimen, &label, expect, Setting { blows: Some(blows), ..Setting::default() });
    }

    /// Returns the expected outcome, which follows from the promises of the format.
    fn expect(&self, specimen: &Specimen, blows: &[Blow]) -> Expect {
        let count = |effect| blows.iter().filter(|b| b.damage.effect() == effect).count();
        let (gone, tails, spots) = (count(Effect::Gone), count(Effect::Tail), count(Effect::Spot));
        if specimen.content.is_empty() || gone + tails + spots <= self.family.parity {
            return Expect::Repairable;
        }
        if gone > self.family.parity {
            return Expect::Lost;
        }
        // With one lane, a shard that is cut lacks at least its last block. With one segment, all
        // spots are in the same segment. If bytes were moved, one end of the block may still be
        // found.
        let moved = |b: &Blow| matches!(b.damage, Damage::Insert | Damage::Remove);
        let last_blocks = match specimen.segments() {
            1 if !blows.iter().any(moved) => gone + tails + spots,
            _ => gone + tails,
        };
        match self.family.lanes {
            1 if last_blocks > self.family.parity => Expect::Lost,
            _ => Expect::Unsure,
        }
    }

    /// Names do not matter, and copies do no harm.
    fn names_and_copies(&mut self, specimen: &Specimen) {
        let intact = Expect::Intact;
        let names: Vec<&OsStr> = specimen.shards.iter().map(|s| s.name.as_os_str()).collect();

        let folder = self.lay_out(specimen);
        rename(&folder, names[0], OsStr::new("aside"));
        rename(&folder, names[3], names[0]);
        rename(&folder, OsStr::new("aside"), names[3]);
        self.trial(specimen, "two names swapped", intact, Setting::default());

        let folder = self.lay_out(specimen);
        let odd: [&[u8]; 8] =
            [b"a b", b"new\nline", b"\xff\xfe", b"-", b"--json", b".hidden", b"x.old", b"x.tmp"];
        odd.iter().zip(&names).for_each(|(new, old)| rename(&folder, old, OsStr::from_bytes(new)));
        self.trial(specimen, "all renamed", intact, Setting::default());

        let folder = self.lay_out(specimen);
        fs::copy(folder.join(names[1]), folder.join("copy")).unwrap();
        self.trial(specimen, "one duplicated", intact, Setting::default());

        let folder = self.lay_out(specimen);
        let offset = Damage::FlipFooter.strike(&folder, specimen, 1, &mut self.chance);
        let (_, copy) = flip(specimen.shards[1].bytes.clone(), 3, &mut self.chance);
        fs::write(folder.join("copy"), copy).unwrap();
        let others = (2..).take(self.family.parity);
        others.for_each(|shard| fs::remove_file(folder.join(names[shard])).unwrap());
        let label = format!("two copies, damaged in front and at {offset}; others lost");
        self.trial(specimen, &label, Expect::Repairable, Setting::default());

        let folder = self.lay_out(specimen);
        fs::write(folder.join("notes.txt"), "no shard").unwrap();
        fs::write(folder.join("alien.paritas"), [0x89; 500]).unwrap();
        let mut paths: Vec<PathBuf> = names.iter().map(|name| folder.join(name)).collect();
        paths.extend([folder.join("notes.txt"), folder.clone()]);
        let setting = Setting { paths, ..Setting::default() };
        self.trial(specimen, "named one by one, among others", intact, setting);
    }

    /// Shards of other objects lie in the folder, or have replaced some of ours.
    fn other_objects(&mut self, specimen: &Specimen) {
        let strangers = [
            self.specimen(specimen.content.len().max(2), "stranger"),
            self.specimen(700, "specimen.bin"),
            self.specimen(5, "specimen.bin"),
        ];
        let ours = || Setting { object: Some(&specimen.id), ..Setting::default() };
        let other_code = Family::new("cauchy:k=7,m=1", 7, 1, 1);
        let segment = other_code.segment();
        let other_code = Specimen::new(other_code, 100, segment, "other", &mut self.chance);

        for stranger in [&strangers[0], &other_code] {
            let folder = self.lay_out(specimen);
            add(stranger, &folder, |_| true);
            self.trial(specimen, "among another object's shards", Expect::Intact, ours());
            let check = self.ambiguous(&folder, specimen, stranger);
            self.record(specimen, "two objects", check);
            fs::remove_file(folder.join(&specimen.shards[0].name)).unwrap();
            self.trial(specimen, "one lost among another's", Expect::Repairable, ours());
        }
        for (count, stranger) in [(1, &strangers[1]), (self.family.parity, &strangers[2])] {
            let folder = self.lay_out(specimen);
            add(stranger, &folder, |shard| shard < count);
            let check = self.ambiguous(&folder, specimen, stranger);
            self.record(specimen, "replaced by another's shards", check);
            let label = format!("{count} replaced by another's shards");
            self.trial(specimen, &label, Expect::Repairable, ours());
            let verify = run(args!["verify", &folder]);
            let check = refuses(&verify, exit::LOST, &[]);
            self.record(specimen, "the other is lost", check);
        }
    }

    /// Checks that `decode` without --object decodes nothing and lists both objects.
    fn ambiguous(&self, folder: &Path, ours: &Specimen, other: &Specimen) -> Check {
        let out = self.yard.path().join("ambiguous");
        let run = run(args!["decode", folder, "--out", &out, "--no-sync"]);
        assert!(!out.exists(), "decoded one of two objects");
        refuses(&run, exit::ARGUMENTS, &[&ours.id, &other.id, &ours.name, &other.name])
    }

    /// More shards are damaged than may be lost, but in different segments.
    fn spread_damage(&mut self, specimen: &Specimen) {
        if specimen.segments() >= 2 {
            self.scattered(specimen);
        }
        if specimen.segments() >= 1 {
            self.segment_wiped(specimen, self.family.parity, Expect::Repairable);
            self.segment_wiped(specimen, self.family.parity + 1, Expect::Lost);
        }
        let shards = self.family.shards();
        self.strike_with(specimen, shards, |_| Damage::FlipFront);
        self.strike_with(specimen, shards, |_| Damage::ExtendByMuch);
        self.strike_with(specimen, shards, |_| Damage::Prepend);
        let mut left = shards;
        self.strike_with(specimen, shards, |_| {
            left -= 1;
            if left == 0 { Damage::FlipFront } else { Damage::CutInFooter }
        });
    }

    /// In every segment, `parity` shards have one changed byte.
    fn scattered(&mut self, specimen: &Specimen) {
        let folder = self.lay_out(specimen);
        let mut files: Vec<Vec<u8>> = specimen.shards.iter().map(|s| s.bytes.clone()).collect();
        for segment in 0..specimen.segments() {
            for shard in self.chance.choose(self.family.parity, self.family.shards()) {
                let at = self.chance.within(specimen.block(shard, segment));
                files[shard] = flip(std::mem::take(&mut files[shard]), at, &mut self.chance).1;
            }
        }
        for (shard, bytes) in specimen.shards.iter().zip(files) {
            fs::write(folder.join(&shard.name), bytes).unwrap();
        }
        self.trial(specimen, "scattered flips", Expect::Repairable, Setting::default());
    }

    /// In `count` shards, the block of one segment is replaced by random bytes.
    fn segment_wiped(&mut self, specimen: &Specimen, count: usize, expect: Expect) {
        let folder = self.lay_out(specimen);
        let segment = self.chance.within(0..specimen.segments());
        for index in self.chance.choose(count, self.family.shards()) {
            let shard = &specimen.shards[index];
            let mut bytes = shard.bytes.clone();
            self.chance.fill(&mut bytes[specimen.block(index, segment)]);
            fs::write(folder.join(&shard.name), bytes).unwrap();
        }
        let label = format!("segment {segment} wiped in {count} shards");
        self.trial(specimen, &label, expect, Setting::default());
    }

    /// Footers of the right form with wrong content.
    fn forged_totals(&mut self, specimen: &Specimen) {
        let shards = self.family.shards();
        let length = specimen.content.len() as u64;
        let cases = [
            ("one forged digest", 1, length, Expect::Repairable),
            ("as many forged digests as may be lost", 2, length, Expect::Repairable),
            ("one forged length", 1, 1 << 62, Expect::Repairable),
            ("all digests forged", shards, length, Expect::CheckFailed),
            ("all lengths forged", shards, 1 << 62, Expect::Lost),
            ("all lengths at the limit", shards, i64::MAX as u64, Expect::Lost),
        ];
        for (label, count, length, expect) in cases {
            let folder = self.lay_out(specimen);
            for index in self.chance.choose(count, shards) {
                let shard = &specimen.shards[index];
                let mut digest = shard.digest();
                digest[5] ^= 1;
                fs::write(folder.join(&shard.name), shard.with_total(length, digest)).unwrap();
            }
            self.trial(specimen, label, expect, Setting::default());
        }
    }

    fn everything_gone(&mut self, specimen: &Specimen) {
        for damage in [Damage::Delete, Damage::CutToNothing, Damage::Zeros, Damage::Directory] {
            let folder = self.lay_out(specimen);
            for shard in 0..self.family.shards() {
                damage.strike(&folder, specimen, shard, &mut self.chance);
            }
            let label = format!("{damage:?} all");
            self.trial(specimen, &label, Expect::NotRecognised, Setting::default());
        }
        let folder = self.lay_out(specimen);
        for shard in 0..self.family.shards() {
            Damage::FlipFooter.strike(&folder, specimen, shard, &mut self.chance);
        }
        self.trial(specimen, "no footer is left", Expect::Lost, Setting::default());
    }

    /// Changes a byte at every offset of a shard file, each time in the next shard.
    fn every_offset(&mut self, specimen: &Specimen) {
        let folder = self.lay_out(specimen);
        for offset in 0..specimen.shards[0].bytes.len() {
            let index = offset % self.family.shards();
            let shard = &specimen.shards[index];
            let (_, bytes) = flip(shard.bytes.clone(), offset, &mut self.chance);
            fs::write(folder.join(&shard.name), bytes).unwrap();
            let damage = match () {
                () if shard.front().contains(&offset) => Damage::FlipFront,
                () if shard.blocks.contains(&offset) => Damage::FlipBlocks,
                () => Damage::FlipFooter,
            };
            let blows = Some(vec![Blow { shard: index, damage, offset }]);
            let setting = Setting { blows, hasty: true, ..Setting::default() };
            let label = format!("the byte at offset {offset} of shard {index}");
            self.trial(specimen, &label, Expect::Repairable, setting);
        }
    }
}
