//! Wrong parity from a wrong encoder: every block has its checksum, and only recomputing parity
//! from the data shows it.

use crate::common;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use crate::common::{
    check, content, crc64_nvme, edit, front_length, mend, only, put, segment_bytes, small_job,
};
use paritas_shards::{DigestCheck, ShardState, State, VerifyReport, WrongLane, verify_deep};

fn check_deep(directory: &Path) -> VerifyReport {
    verify_deep(&only(directory), NonZeroUsize::new(2), &|_| {}).unwrap()
}

/// A lane of `payload` bytes, and its place among the blocks of a shard file.
struct Lane {
    shard: u32,
    segment: u64,
    lane: u32,
    /// Length of a block in bytes, and offset of the lane in it.
    block: usize,
    start: usize,
    payload: usize,
}

/// Writes other bytes into a lane with the matching checksum, as an encoder does that computes
/// wrongly.
fn write_wrongly(file: &Path, wrong: &Lane) {
    edit(file, |bytes| {
        let start = front_length(bytes) + wrong.segment as usize * wrong.block + wrong.start;
        let payload = start..start + wrong.payload;
        bytes[payload.start] ^= 0x40;
        let mut bound = b"0123456789abcdef".to_vec();
        bound.extend(wrong.shard.to_le_bytes());
        bound.extend(wrong.segment.to_le_bytes());
        bound.extend(wrong.lane.to_le_bytes());
        bound.extend(&bytes[payload.clone()]);
        let sum = crc64_nvme(&bound).to_le_bytes();
        bytes[payload.end..payload.end + 8].copy_from_slice(&sum);
    });
}

/// Returns the shard, stage, lane, first segment and number of segments of each wrong lane.
fn wrong_lanes(report: &VerifyReport) -> Vec<(usize, u8, u32, u64, u64)> {
    let figures = |w: &WrongLane| (w.shard, w.stage, w.lane, w.first_segment, w.segments);
    report.wrong_lanes.iter().map(figures).collect()
}

/// The lane of parity shard 5 of a small 4+2 object: three rows of eight bytes.
fn parity_lane(segment: u64) -> Lane {
    Lane { shard: 5, segment, lane: 0, block: 24 + 8, start: 0, payload: 24 }
}

#[test]
fn what_is_right_is_intact() {
    for spec in ["4+2", "rdp:k=4", "xcode:n=5", "lt:k=8,n=16,nodes=4", "bbdpg:k=4,m=2,m2=3"] {
        let directory = tempfile::tempdir().unwrap();
        put(&small_job(spec, directory.path()), &content(3000));
        let report = check_deep(directory.path());
        assert_eq!(report.status, State::Intact, "{spec}: {report:?}");
        assert_eq!(report.recomputed_segments, Some(report.segments), "{spec}");
        assert!(report.wrong_lanes.is_empty() && report.reason.is_none());
        assert_eq!(check(&only(directory.path())).recomputed_segments, None);
    }
}

#[test]
fn wrong_parity_is_found_and_named() {
    let directory = tempfile::tempdir().unwrap();
    let shards =
        put(&small_job("4+2", directory.path()), &content(segment_bytes("4+2") * 10)).shards;
    let whole = fs::read(&shards[5]).unwrap();
    [3, 7].iter().for_each(|&segment| write_wrongly(&shards[5], &parity_lane(segment)));
    let plain = check(&only(directory.path()));
    assert_eq!((plain.status, plain.tolerable), (State::Intact, 2), "checksums show nothing");

    let report = check_deep(directory.path());
    assert_eq!((report.status, report.digest), (State::Inconsistent, DigestCheck::Right));
    assert_eq!((wrong_lanes(&report), report.tolerable), (vec![(5, 1, 0, 3, 2)], 1));
    assert_eq!(report.shards[5].state, ShardState::Inconsistent);
    let flaws = &report.shards[5].files[0].flaws;
    assert!(flaws[0].contains("in 2 segments, first in segment 3"), "{flaws:?}");
    assert!(report.shards[..5].iter().all(|shard| shard.state == ShardState::Intact));

    // Only segments with all of their data are recomputed.
    edit(&shards[0], |bytes| {
        let at = front_length(bytes) + 3 * 32;
        bytes[at] ^= 1;
    });
    let report = check_deep(directory.path());
    assert_eq!((report.recomputed_segments, report.segments), (Some(9), 10));
    assert_eq!(report.wrong_lanes[0].first_segment, 7);

    // The reason says what to do: remove the file, and repair writes it anew.
    assert!(report.reason.unwrap().contains("remove the files"));
    fs::remove_file(&shards[5]).unwrap();
    mend(&only(directory.path())).unwrap();
    assert_eq!(fs::read(&shards[5]).unwrap(), whole);
    assert_eq!(check_deep(directory.path()).status, State::Intact);
}

/// Blocks of an LT code are compared with the blocks that the decoded data give. Decoding does not
/// use the damaged blocks, or the digest would be wrong.
#[test]
fn wrong_blocks_of_an_lt_code_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let spec = "lt:k=4,n=40,nodes=10";
    let shards = put(&small_job(spec, directory.path()), &content(32)).shards;
    let block = 8 + 8;
    let blocks = |shard: &Path| {
        let bytes = fs::read(shard).unwrap();
        (common::footer_start(&bytes) - front_length(&bytes)) / block
    };
    assert_eq!(blocks(&shards[9]), 4);
    let lane =
        Lane { shard: 9, segment: 0, lane: 3, block: 4 * block, start: 3 * block, payload: 8 };
    write_wrongly(&shards[9], &lane);
    assert_eq!(check(&only(directory.path())).status, State::Intact);
    let report = check_deep(directory.path());
    assert_eq!(report.status, State::Inconsistent, "{report:?}");
    assert_eq!(wrong_lanes(&report), [(9, 1, 3, 0, 1)]);
}
