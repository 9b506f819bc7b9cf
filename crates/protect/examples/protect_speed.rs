//! Times protecting and verifying a folder, beside BLAKE3 of all its bytes on as many threads. The
//! first argument is the folder, the second one a folder for the parity. The best of some runs
//! counts.

use std::io::{Read, Seek, SeekFrom};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use paritas_protect::{ProtectJob, VerifyOptions, find, plan, protect, verify};

/// Number of runs, of which the best counts.
const RUNS: usize = 5;
/// Number of bytes that a thread hashes at once.
const STEP: usize = 1 << 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [root, parity] = &arguments[..] else {
        return Err("give a folder and one for parity".into());
    };
    let threads = NonZeroUsize::new(2);
    let job = ProtectJob::new(vec![root.clone()])
        .parity_dirs(vec![parity.clone()])
        .threads(threads)
        .sync(false)
        .force(true);
    let mut files = Vec::new();
    list(root, &mut files)?;
    let hashed = best(|| hash(&files))?;
    println!("BLAKE3   {hashed:?}, {} files", files.len());
    let mut stored = 0;
    let made = best(|| {
        stored = protect(&plan(&job)?, &|_| {})?.stored_bytes;
        Ok(())
    })?;
    println!("protect  {made:?}, {:.2} of BLAKE3, {stored} bytes", ratio(made, hashed));
    let protection = find(std::slice::from_ref(parity))?.remove(0);
    let options = VerifyOptions::default().threads(threads);
    let verified = best(|| {
        let protection = find(std::slice::from_ref(parity))?.remove(0);
        verify(&protection, &options, &|_| {})?;
        Ok(())
    })?;
    println!("verify   {verified:?}, {:.2} of BLAKE3", ratio(verified, hashed));
    let found = best(|| find(std::slice::from_ref(parity)).map(drop).map_err(Into::into))?;
    let quick = VerifyOptions::default().threads(threads).quick(true);
    let looked = best(|| verify(&protection, &quick, &|_| {}).map(drop).map_err(Into::into))?;
    println!("of which find {found:?}, looking through the folder {looked:?}");
    let asked = protection.redundancy().millionths() as f64 / 1e6 * protection.bytes() as f64;
    println!("stored   {:.3} of what was asked for", stored as f64 / asked);
    Ok(())
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

fn best(
    mut run: impl FnMut() -> Result<(), Box<dyn std::error::Error>>,
) -> Result<Duration, Box<dyn std::error::Error>> {
    let mut best = Duration::MAX;
    for _ in 0..RUNS {
        let start = Instant::now();
        run()?;
        best = best.min(start.elapsed());
    }
    Ok(best)
}

fn list(folder: &Path, files: &mut Vec<(PathBuf, u64)>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            list(&entry.path(), files)?;
        } else if metadata.is_file() {
            files.push((entry.path(), metadata.len()));
        }
    }
    Ok(())
}

/// Hashes parts of a megabyte of all files on two threads.
fn hash(files: &[(PathBuf, u64)]) -> Result<(), Box<dyn std::error::Error>> {
    let parts = files.iter().flat_map(|(path, size)| {
        (0..size.div_ceil(STEP as u64).max(1)).map(move |part| (path, part * STEP as u64))
    });
    let parts = Mutex::new(parts);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut memory = vec![0; STEP];
                loop {
                    let Some((path, at)) = parts.lock().unwrap().next() else { return };
                    let mut file = std::fs::File::open(path).unwrap();
                    file.seek(SeekFrom::Start(at)).unwrap();
                    let mut read = 0;
                    while let Ok(more @ 1..) = file.read(&mut memory[read..]) {
                        read += more;
                    }
                    std::hint::black_box(blake3::hash(&memory[..read]));
                }
            });
        }
    });
    Ok(())
}
