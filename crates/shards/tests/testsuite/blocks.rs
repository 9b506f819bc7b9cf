//! Shards that are kept elsewhere than in files are the same bytes.

use std::fs;

use crate::common::{content, put, small_job};
use paritas_shards::Digest;
use paritas_store::object::encode::encode_segments;
use paritas_store::object::layout::{NewObject, ObjectLayout};

/// Returns the bytes of every part of stage 1, made block by block.
fn shards_of(layout: &ObjectLayout, content: &[u8]) -> Vec<Vec<u8>> {
    let parts = layout.parts_in(1);
    let mut shards: Vec<Vec<u8>> = parts.clone().map(|part| layout.front(part).unwrap()).collect();
    let mut segment = layout.segment().unwrap();
    let (mut source, mut number) = (content, 0);
    while segment.fill(number, &mut source).unwrap() > 0 {
        segment.make(parts.clone()).unwrap();
        for part in parts.clone() {
            let place = layout.blocks(part, content.len() as u64, number..number + 1).unwrap();
            assert_eq!(place.start, shards[part].len() as u64);
            segment.seal(part);
            shards[part].extend(segment.block(part).concat());
            assert_eq!(place.end, shards[part].len() as u64);
        }
        number += 1;
    }
    assert_eq!(number, layout.segments(content.len() as u64));
    let digest = Digest::new(blake3::hash(content).into());
    for part in parts {
        let length = content.len() as u64;
        shards[part].extend(layout.footer(part, length, digest).unwrap());
        assert_eq!(layout.file_bytes(part, length), Some(shards[part].len() as u64));
    }
    shards
}

#[test]
fn blocks_are_those_of_files() {
    for (spec, bytes) in
        [("4+2", 1_000_000), ("rdp:k=4", 70_000), ("4+2", 0), ("bbdpg:k=4,m=1,m2=2", 99_999)]
    {
        let directory = tempfile::tempdir().unwrap();
        let job = small_job(spec, directory.path());
        let content = content(bytes);
        let report = put(&job, &content);
        let shape = NewObject {
            packet: job.packet,
            block_bytes: job.block_bytes,
            object: Some(report.object),
            length: job.length_hint,
            ..NewObject::default()
        };
        let layout = ObjectLayout::new(job.code.clone(), &job.name, shape).unwrap();
        let shards = shards_of(&layout, &content);
        for (part, path) in report.shards.iter().enumerate() {
            assert!(fs::read(path).unwrap() == shards[part], "{spec}, part {part}");
            assert_eq!(path.file_name().unwrap(), layout.file_name(part).unwrap());
        }
    }
}

#[test]
fn a_header_gives_the_layout_back() {
    let code = paritas::Code::new(&"10+4".parse().unwrap()).unwrap();
    let layout = ObjectLayout::new(code, "x", NewObject::default()).unwrap();
    let mut start = layout.front(3).unwrap();
    start.extend([7; 100]);
    let again = ObjectLayout::read(&start, |_| Default::default()).unwrap();
    assert_eq!(again.object(), layout.object());
    assert_eq!(again.front(3).unwrap(), start[..start.len() - 100]);
    let digest = Digest::new([1; 32]);
    assert_eq!(again.footer(5, 77, digest).unwrap(), layout.footer(5, 77, digest).unwrap());
    for cut in [0, 5, 20, layout.front(3).unwrap().len() - 1] {
        assert!(ObjectLayout::read(&start[..cut], |_| Default::default()).is_err(), "{cut} bytes");
    }
}

#[test]
fn packets_of_impossible_sizes_are_refused() {
    for spec in ["4+2", "lt:k=16,n=32"] {
        for packet in [0, (1 << 20) + 1] {
            let code = paritas::Code::new(&spec.parse().unwrap()).unwrap();
            let shape = NewObject { packet: Some(packet), ..NewObject::default() };
            let error = ObjectLayout::new(code, "x", shape).unwrap_err();
            assert!(error.to_string().ends_with(&format!("got {packet}")), "{spec}: {error}");
        }
    }
}

/// The lanes of a block follow each other from its beginning to its end, also on a node that has
/// lanes of several stages.
#[test]
fn lanes_fill_their_blocks() {
    for spec in ["4+2", "rdp:k=4", "xcode:n=5", "bbdpg:k=3,m=2,m2=3,interleave=all"] {
        let code = paritas::Code::new(&spec.parse().unwrap()).unwrap();
        let stages = code.stages();
        let layout = ObjectLayout::new(code, "x", NewObject::default()).unwrap();
        for part in 0..layout.parts_in(stages).end {
            let block = layout.blocks(part, 100_000, 0..1).unwrap();
            let places = layout
                .lanes(part)
                .map(|lane| layout.lanes_place(part, 100_000, 0, lane..lane + 1).unwrap());
            let end = places.fold(block.start, |end, place| {
                assert_eq!(place.start, end, "{spec}, part {part}");
                place.end
            });
            assert_eq!(end, block.end, "{spec}, part {part}");
        }
    }
}

#[test]
fn damaged_lanes_are_refused_and_computed() {
    let code = paritas::Code::new(&"rdp:k=4".parse().unwrap()).unwrap();
    let layout = ObjectLayout::new(code, "x", NewObject::default()).unwrap();
    let content = content(200_000);
    let shards = shards_of(&layout, &content);
    let length = content.len() as u64;
    let block = |part: usize| {
        let place = layout.blocks(part, length, 0..1).unwrap();
        shards[part][place.start as usize..place.end as usize].to_vec()
    };
    let mut segment = layout.segment().unwrap();
    segment.begin(0, &layout.extent(length));
    let lanes = layout.lanes(0);
    let second = layout.lanes_place(0, length, 0, lanes.start + 1..lanes.start + 2).unwrap();
    let start = layout.blocks(0, length, 0..1).unwrap().start;
    let mut damaged = block(0);
    damaged[(second.start - start) as usize] ^= 1;
    assert_eq!(segment.accept(0, &damaged), [lanes.start + 1]);
    let cut = block(1);
    assert_eq!(segment.accept(1, &cut[..cut.len() - 1]), [layout.lanes(1).end - 1]);
    // A block of another shard is refused.
    assert_eq!(segment.accept(3, &block(2)).len(), layout.lanes(3).len());
    assert!(!segment.is_solvable());
    for part in 2..6 {
        assert!(segment.accept(part, &block(part)).is_empty());
    }
    segment.make_data().unwrap();
    let bytes = layout.segment_range(length, 0).end as usize;
    assert!(segment.data(bytes).concat() == content[..bytes]);
}

/// A source that fails once, and would go on if it were read again.
struct FailsOnce(bool);

impl std::io::Read for FailsOnce {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        assert!(!self.0, "a source that has failed is not read again");
        self.0 = true;
        // Time for other threads to queue up for the source.
        std::thread::sleep(std::time::Duration::from_millis(20));
        bytes.fill(7);
        Err(std::io::Error::other("a bad sector"))
    }
}

#[test]
fn a_source_that_has_failed_is_not_read_again() {
    let code = paritas::Code::new(&"4+2".parse().unwrap()).unwrap();
    let layout = ObjectLayout::new(code, "x", NewObject::default()).unwrap();
    let next = || layout.segment();
    let done = |_, _| Ok(());
    let error = encode_segments(FailsOnce(false), layout.parts_in(1), 4, next, done).unwrap_err();
    assert!(error.to_string().contains("a bad sector"), "{error}");
}
