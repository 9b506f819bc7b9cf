//! Repair that reads only what it needs: the number of bytes, and the treatment of damage.

use std::fs;
use std::num::NonZeroUsize;

use crate::common::{check, content, only, put, segment_bytes, small_job};
use paritas_shards::{DigestCheck, Object, RepairJob, RepairReport, State, repair};

fn mend_by_few_reads(object: &Object) -> RepairReport {
    let job = RepairJob::default().sync(false).threads(NonZeroUsize::new(2)).fewest_reads(true);
    repair(object, &job, &|_| {}).unwrap()
}

/// Removes a shard and repairs. Returns the number of bytes read, and that of the blocks of k
/// shards.
fn reads(spec: &str, lost: usize, segments: usize) -> (u64, u64) {
    let directory = tempfile::tempdir().unwrap();
    put(&small_job(spec, directory.path()), &content(segments * segment_bytes(spec)));
    let whole = only(directory.path());
    let path = whole.parts()[lost][0].path().to_owned();
    let before = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let object = only(directory.path());
    let report = mend_by_few_reads(&object);
    assert_eq!(report.digest, DigestCheck::Unchecked);
    assert_eq!(fs::read(&path).unwrap(), before, "{spec}: shard {lost}");
    let k = (object.shard_count() - object.code().tolerance()) as u64;
    (report.read_bytes, k * object.block_bytes(lost) * segments as u64)
}

/// RDP with ten data nodes reads 75 of 100 lanes, checksums included.
#[test]
fn rdp_reads_three_quarters() {
    for lost in [0, 4, 9, 10] {
        let (read, naive) = reads("rdp:k=10", lost, 3);
        assert_eq!(4 * read, 3 * naive, "shard {lost}");
    }
    let (read, naive) = reads("rdp:k=10", 11, 3);
    assert_eq!(read, naive);
}

#[test]
fn others_read_no_more_than_k_shards() {
    for (spec, percent) in [
        ("evenodd:k=11", 78),
        ("star:k=11", 73),
        ("xcode:n=11", 73),
        ("4+2", 100),
        ("isal-rs:k=4,m=2", 100),
    ] {
        let (read, naive) = reads(spec, 1, 2);
        assert!(100 * read <= percent * naive, "{spec}: {read} of {naive} bytes");
    }
}

/// If a needed lane is damaged, everything is verified and repaired. The bytes that were read in
/// vain are counted, too.
#[test]
fn damage_on_the_way_is_repaired_too() {
    let plain: fn(&Object) -> RepairReport = |object| {
        let job = RepairJob::default().sync(false).threads(NonZeroUsize::new(2));
        repair(object, &job, &|_| {}).unwrap()
    };
    let [plain, in_vain] =
        [plain, mend_by_few_reads as fn(&Object) -> RepairReport].map(mend_a_loss_and_damage);
    assert!(in_vain > plain, "{in_vain} and {plain} bytes");
}

/// Deletes a shard, damages the next, and returns the number of bytes that the repair read.
fn mend_a_loss_and_damage(mend: impl Fn(&Object) -> RepairReport) -> u64 {
    let directory = tempfile::tempdir().unwrap();
    put(&small_job("rdp:k=4", directory.path()), &content(3 * segment_bytes("rdp:k=4")));
    let whole = only(directory.path());
    let paths: Vec<_> = whole.parts().iter().map(|files| files[0].path().to_owned()).collect();
    fs::remove_file(&paths[0]).unwrap();
    let intact = fs::read(&paths[1]).unwrap();
    let mut damaged = intact.clone();
    // The last of three blocks, which stand after the front header: 24 bytes and its body.
    let front = 24 + u32::from_le_bytes(intact[12..16].try_into().unwrap()) as usize;
    let block = whole.block_bytes(1) as usize;
    damaged[front + 2 * block..front + 3 * block].iter_mut().for_each(|byte| *byte ^= 1);
    fs::write(&paths[1], damaged).unwrap();
    let report = mend(&only(directory.path()));
    assert_eq!((report.repaired.len(), report.digest), (2, DigestCheck::Right));
    assert_eq!(fs::read(&paths[1]).unwrap(), intact);
    assert_eq!(check(&only(directory.path())).status, State::Intact);
    report.read_bytes
}
