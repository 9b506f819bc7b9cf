//! LT codes over memory: an object is recovered from any blocks that suffice, and nothing else is
//! returned.

use paritas::lt::{Graph, LtBlock, LtCode, LtDecoder, LtEncoder, LtInfo, LtOptions, Method};
use paritas::{ErrorKind, Kernel, KernelChoice, Stores};

fn code(text: &str) -> LtCode {
    LtCode::new(&text.parse().unwrap()).unwrap()
}

fn object(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251 * 7 + at / 251 * 13) as u8).collect()
}

fn encode(spec: &str, length: usize) -> (Vec<u8>, LtInfo, Vec<LtBlock>) {
    let object = object(length);
    let encoder = LtEncoder::new(code(spec), LtOptions::default()).unwrap();
    let (info, blocks) = encoder.encode(&object).unwrap();
    assert_eq!(blocks.count(), info.blocks());
    assert_eq!(
        (blocks.get(0).unwrap().len(), blocks.get(info.blocks())),
        (info.block_bytes(), None)
    );
    let owned =
        |block: LtBlock<&[u8]>| LtBlock { number: block.number, bytes: block.bytes.to_vec() };
    (object, info, blocks.iter().map(owned).collect())
}

/// Returns the blocks in an order that begins anywhere and jumps.
fn scattered<T: Clone>(blocks: &[T]) -> Vec<T> {
    let step = (blocks.len() * 5 / 8..).find(|&step| gcd(step, blocks.len()) == 1).unwrap();
    (0..blocks.len()).map(|i| blocks[(3 + i * step) % blocks.len()].clone()).collect()
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn decode(info: &LtInfo, blocks: &[LtBlock], options: LtOptions) -> Vec<u8> {
    let mut decoder = LtDecoder::new(info, options).unwrap();
    assert!(scattered(blocks).into_iter().any(|block| decoder.push(block).unwrap()));
    let mut rebuilt = vec![0xEE; info.object_bytes() as usize];
    decoder.reconstruct_into(&mut rebuilt).unwrap();
    assert_eq!(*decoder.reconstruct().unwrap(), rebuilt);
    rebuilt
}

/// Covers objects shorter than k, objects that end within a block, and objects that leave the last
/// blocks empty.
#[test]
fn objects_of_all_lengths_come_back() {
    for (data, lengths) in [
        (1, vec![1, 2, 63, 64, 65, 70_000]),
        (2, vec![1, 2, 3, 1000]),
        (10, vec![1, 9, 10, 11, 21, 640, 4096, 123_457]),
        (100, vec![1, 101, 250, 64_000, 1_000_003]),
    ] {
        for length in lengths {
            let spec = format!("lt:k={data},n={},c=0.2,variant=uniform+decodable", 3 * data);
            let (object, info, blocks) = encode(&spec, length);
            assert_eq!(decode(&info, &blocks, LtOptions::default()), object, "{data}, {length}");
        }
    }
}

#[test]
fn every_method_kernel_and_store_gives_the_object() {
    let (object, info, blocks) = encode("lt:k=50,n=200,c=0.2", 50 * 3000 - 17);
    for method in [Method::Greedy, Method::Lazy, Method::Inactivation] {
        for kernel in Kernel::candidates() {
            for stores in [Stores::NonTemporal, Stores::Cached] {
                let kernel = KernelChoice::Only(kernel);
                let options =
                    LtOptions::default().method(method).kernel(kernel).stores(stores).threads(2);
                assert_eq!(decode(&info, &blocks, options), object, "{method:?} {kernel:?}");
            }
        }
    }
}

#[test]
fn originals_are_the_object() {
    let (object, info, blocks) = encode("lt:k=20,n=50,variant=originals+coverage", 20 * 77 - 5);
    let first: Vec<u8> = blocks[..20].iter().flat_map(|block| block.bytes.clone()).collect();
    assert_eq!(first[..object.len()], object);
    assert_eq!(decode(&info, &blocks[..20], LtOptions::default()), object);
    assert_eq!(decode(&info, &blocks[10..], LtOptions::default()), object);
}

#[test]
fn lost_blocks_are_made_again() {
    let (object, _, blocks) = encode("lt:k=30,n=70,c=0.3", 30 * 500);
    let encoder = LtEncoder::new(code("lt:k=30,n=70,c=0.3"), LtOptions::default()).unwrap();
    let lost = [69, 3, 44];
    let mut made = vec![vec![0xEE; 500]; 3];
    let mut targets: Vec<&mut [u8]> = made.iter_mut().map(Vec::as_mut_slice).collect();
    encoder.encode_into(&object, &lost, &mut targets).unwrap();
    assert!(lost.iter().zip(&made).all(|(&number, made)| blocks[number].bytes == *made));
    for (numbers, length) in [(vec![70, 1, 2], 500), (vec![1, 1, 2], 500), (vec![1, 2, 3], 499)] {
        let mut made = vec![vec![0; length]; 3];
        let mut targets: Vec<&mut [u8]> = made.iter_mut().map(Vec::as_mut_slice).collect();
        assert!(encoder.encode_into(&object, &numbers, &mut targets).is_err(), "{numbers:?}");
    }
    assert!(encoder.encode(&[]).is_err());
}

#[test]
fn errors_of_an_encoder_are_about_its_blocks() {
    let encoder = LtEncoder::new(code("lt:k=30,n=70,c=0.3"), LtOptions::default()).unwrap();
    let refused = |object: &[u8], numbers: &[usize], lengths: &[usize]| {
        let mut made: Vec<Vec<u8>> = lengths.iter().map(|&length| vec![0; length]).collect();
        let mut targets: Vec<&mut [u8]> = made.iter_mut().map(Vec::as_mut_slice).collect();
        encoder.encode_into(object, numbers, &mut targets).unwrap_err()
    };
    let object = [7; 300];
    for (numbers, lengths) in
        [(&[1, 2][..], &[][..]), (&[1, 2], &[10; 1]), (&[1, 2], &[10; 3]), (&[], &[10])]
    {
        let error = refused(&object, numbers, lengths);
        let counts = (Some(numbers.len() as u64), Some(lengths.len() as u64));
        assert_eq!(
            (error.kind(), error.expected(), error.given()),
            (ErrorKind::Buffers, counts.0, counts.1)
        );
    }
    assert_eq!(refused(&[], &[1, 2], &[10; 2]).kind(), ErrorKind::Parameters);
    let error = refused(&object, &[40, 60], &[10, 11]);
    assert_eq!((error.kind(), error.node()), (ErrorKind::Length, Some(60)), "{error}");
    assert!(error.to_string().starts_with("buffer 60 must have 10 bytes"), "{error}");
}

/// Blocks that do not belong to this object are refused, and change nothing.
#[test]
fn foreign_and_damaged_blocks_are_refused() {
    let (object, info, blocks) = encode("lt:k=20,n=60,c=0.3", 20 * 100);
    let (_, _, others) = encode("lt:k=20,n=60,c=0.3,seed=1", 20 * 100);
    let mut decoder = LtDecoder::new(&info, LtOptions::default()).unwrap();
    let mut ready = false;
    for (block, other) in scattered(&blocks).into_iter().zip(scattered(&others)) {
        let LtBlock { number, bytes } = block.clone();
        let mut damaged = bytes.clone();
        damaged[number] ^= 0x10;
        for (bad, kind) in [
            (LtBlock { number, bytes: damaged }, ErrorKind::Damaged),
            (other, ErrorKind::Damaged),
            (LtBlock { number: (number + 1) % 60, bytes: bytes.clone() }, ErrorKind::Damaged),
            (LtBlock { number, bytes: bytes[1..].to_vec() }, ErrorKind::Length),
            (LtBlock { number: 60, bytes: bytes.clone() }, ErrorKind::Parameters),
            (LtBlock { number: usize::MAX, bytes }, ErrorKind::Parameters),
        ] {
            // By chance of the graph, a block of the other object may be the same.
            if bad == block {
                continue;
            }
            let received = decoder.received();
            assert_eq!(decoder.push(bad).unwrap_err().kind(), kind);
            assert_eq!((decoder.received(), decoder.is_ready()), (received, ready));
        }
        ready = decoder.push(block.clone()).unwrap();
        assert_eq!(decoder.push(block).unwrap(), ready, "a second time it changes nothing");
    }
    let mut rebuilt = vec![0; object.len()];
    decoder.reconstruct_into(&mut rebuilt).unwrap();
    assert_eq!(rebuilt, object);
    assert_eq!(decoder.reconstruct_into(&mut rebuilt[1..]).unwrap_err().kind(), ErrorKind::Length);
}

#[test]
fn too_few_blocks_say_how_many_more() {
    let (object, info, blocks) = encode("lt:k=100,n=300,c=0.1", 100 * 8);
    let mut decoder = LtDecoder::new(&info, LtOptions::default()).unwrap();
    blocks[..50].iter().for_each(|block| assert!(!decoder.push(block.clone()).unwrap()));
    let mut rebuilt = vec![0; object.len()];
    let error = decoder.reconstruct_into(&mut rebuilt).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotEnough);
    let more = decoder.likely_needed().unwrap();
    assert!((50..70).contains(&more), "{more}");
    let expected =
        format!("50 blocks do not determine 100 data blocks; likely {more} more are needed");
    assert_eq!(error.to_string(), expected);
    assert!(rebuilt.iter().all(|&byte| byte == 0), "nothing was written");
    assert_eq!(decoder.reconstruct().unwrap_err().to_string(), error.to_string());

    // No memory is asked for before the blocks suffice.
    let info = LtInfo::unchecked(code("lt:k=100,n=300,c=0.1"), 100 << 50, 1 << 50).unwrap();
    let decoder = LtDecoder::<Vec<u8>>::new(&info, LtOptions::default()).unwrap();
    assert_eq!(decoder.reconstruct().unwrap_err().kind(), ErrorKind::NotEnough);

    let (_, info, blocks) = encode("lt:k=100,n=110,c=0.1", 100 * 8);
    let mut decoder = LtDecoder::new(&info, LtOptions::default().method(Method::Greedy));
    let decoder = decoder.as_mut().unwrap();
    assert!(!blocks.into_iter().any(|block| decoder.push(block).unwrap()));
    let error = decoder.reconstruct_into(&mut rebuilt).unwrap_err().to_string();
    assert!(error.ends_with("even all 110 would not suffice"), "{error}");
}

/// Covers blocks without checksums in the metadata, which suit data that another layer checks, and
/// borrowed blocks.
#[test]
fn unchecked_blocks_are_borrowed() {
    let (object, _, blocks) = encode("lt:k=30,n=90", 12_345);
    let info = LtInfo::unchecked(code("lt:k=30,n=90"), 12_345, blocks[0].bytes.len()).unwrap();
    let graph = info.graph().unwrap();
    let mut decoder = LtDecoder::with_graph(&info, &graph, LtOptions::default()).unwrap();
    for LtBlock { number, bytes } in &blocks {
        decoder.push(LtBlock { number: *number, bytes: bytes.as_slice() }).unwrap();
    }
    let mut rebuilt = vec![0; object.len()];
    decoder.reconstruct_into(&mut rebuilt).unwrap();
    assert_eq!(rebuilt, object);
    for other in ["lt:k=30,n=91", "lt:k=29,n=90"] {
        let graph = code(other).graph().unwrap();
        let error = LtDecoder::<Vec<u8>>::with_graph(&info, &graph, LtOptions::default());
        let error = error.unwrap_err().to_string();
        assert!(error.ends_with("is foreign: the code has 90 over 30"), "{error}");
    }
    let other = code("lt:k=30,n=90,seed=2").graph().unwrap();
    let error = LtDecoder::<Vec<u8>>::with_graph(&info, &other, LtOptions::default());
    assert!(error.unwrap_err().to_string().starts_with("the graph is foreign"));
    let neighbours: Vec<Vec<u32>> =
        (0..90).map(|block| graph.neighbours(block).unwrap().to_vec()).collect();
    let same = Graph::from_neighbours(30, &neighbours).unwrap();
    assert!(LtDecoder::<Vec<u8>>::with_graph(&info, &same, LtOptions::default()).is_ok());
    assert!(LtInfo::unchecked(code("lt:k=30,n=90"), 12_345, 411).is_err());
    assert!(LtInfo::unchecked(code("lt:k=30,n=90"), 0, 411).is_err());
}

/// Covers the largest code with the shortest blocks, and inactivation with hardly more blocks than
/// data.
#[test]
fn the_largest_code_decodes() {
    let spec = "lt:k=65536,n=68000,c=0.05,delta=0.5,variant=uniform";
    let (object, info, blocks) = encode(spec, 65_536);
    assert_eq!(blocks[0].bytes.len(), 1);
    let mut decoder = LtDecoder::new(&info, LtOptions::default()).unwrap();
    for block in scattered(&blocks).into_iter().take(66_500) {
        decoder.push(block).unwrap();
    }
    let mut rebuilt = vec![0; object.len()];
    decoder.reconstruct_into(&mut rebuilt).unwrap();
    assert_eq!(rebuilt, object);
}

/// A graph that was not the first to be drawn keeps its number when it is stored.
#[test]
fn metadata_keeps_the_number_of_the_graph() {
    let spec = |seed| format!("lt:k=40,n=60,c=0.3,variant=decodable,seed={seed}");
    let later = |spec: &String| code(spec).graph().unwrap().attempt() > 0;
    let spec = (0..20).map(spec).find(later).unwrap();
    let (_, info, _) = encode(&spec, 1000);
    let info = info.with_graph().unwrap();
    assert_eq!(LtInfo::from_bytes(&info.to_bytes().unwrap()).unwrap(), info);
}

/// Metadata is restored from its bytes, with the graph or without; other bytes are refused.
#[test]
fn metadata_is_kept_as_bytes() {
    let (object, info, blocks) =
        encode("lt:k=20,n=60,c=0.3,variant=coverage+decodable", 20 * 100 - 3);
    let with_graph = info.clone().with_graph().unwrap();
    for info in [info, with_graph] {
        let bytes = info.to_bytes().unwrap();
        let read = LtInfo::from_bytes(&bytes).unwrap();
        assert_eq!(read, info);
        assert_eq!(decode(&read, &blocks, LtOptions::default()), object);
        for end in 0..bytes.len() {
            assert!(LtInfo::from_bytes(&bytes[..end]).is_err(), "{end}");
        }
        assert!(LtInfo::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
        for at in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0x81;
            assert!(LtInfo::from_bytes(&wrong).is_err(), "byte {at}");
        }
    }
}

/// Dense elimination takes time in the cube of what is left to it, so a code whose blocks have
/// hundreds of neighbours is refused instead of being solved for an hour.
#[test]
fn dense_graphs_are_refused() {
    let spec = "lt:k=9000,n=9900,variant=coverage,coverage=200";
    let (_, info, blocks) = encode(spec, 9000);
    let mut decoder = LtDecoder::new(&info, LtOptions::default()).unwrap();
    for block in blocks {
        assert!(!decoder.push(block).unwrap());
    }
    let error = decoder.reconstruct().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Parameters, "{error}");
    assert!(error.to_string().contains("more than 8192 of its 9000"), "{error}");
}
