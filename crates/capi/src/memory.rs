//! Turns a caller's pointers into references, slices and shards. Everything that can be checked is
//! checked before the first reference is made.

use std::ffi::{CStr, c_char};
use std::path::PathBuf;
use std::{ptr, slice};

use smallvec::SmallVec;

use crate::status::{Failure, Result};

/// Largest number of shards for which a call does not allocate memory.
const ON_STACK: usize = 64;

fn null(what: &str) -> Failure {
    Failure::arguments(format!("{what} must not be null"))
}

/// Refuses a pointer that is null, or not aligned for a `T`.
fn expect_usable<T>(pointer: *const T, what: &str) -> Result<()> {
    match pointer {
        pointer if pointer.is_null() => Err(null(what)),
        pointer if pointer.is_aligned() => Ok(()),
        _ => {
            let unit = align_of::<T>();
            Err(Failure::arguments(format!("{what} must lie at a multiple of {unit} bytes")))
        }
    }
}

/// Stores a result for the caller; the memory may be uninitialised.
///
/// # Safety
/// `to` is null, or valid for a write.
pub(crate) unsafe fn store<T>(to: *mut T, value: T, what: &str) -> Result<()> {
    expect_usable(to, what)?;
    // SAFETY: as the caller promises; the pointer is aligned.
    unsafe { to.write(value) };
    Ok(())
}

/// Stores a result for the caller, unless `to` is null, which means that the caller does not want
/// it.
///
/// # Safety
/// As [`store`].
pub(crate) unsafe fn tell<T>(to: *mut T, value: T, what: &str) -> Result<()> {
    match to.is_null() {
        true => Ok(()),
        // SAFETY: as the caller promises.
        false => unsafe { store(to, value, what) },
    }
}

/// Returns the value at `pointer`; `None` if it is null, which means that the caller leaves the
/// value out.
///
/// # Safety
/// `pointer` is null, or valid for a read during `'a`.
pub(crate) unsafe fn optional<'a, T>(pointer: *const T, what: &str) -> Result<Option<&'a T>> {
    if pointer.is_null() {
        return Ok(None);
    }
    expect_usable(pointer, what)?;
    // SAFETY: as the caller promises; the pointer is aligned.
    Ok(Some(unsafe { &*pointer }))
}

/// Returns the slice of `count` values at `pointer`, which may be null if `count` is 0.
///
/// # Safety
/// `pointer` is null, or valid for reads of `count` values during `'a`.
pub(crate) unsafe fn values<'a, T>(pointer: *const T, count: usize, what: &str) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    expect_size::<T>(count, what)?;
    expect_usable(pointer, what)?;
    // SAFETY: as the caller promises; the length fits into the address space.
    Ok(unsafe { slice::from_raw_parts(pointer, count) })
}

/// Returns the slice of `count` values at `pointer`, for writing.
///
/// # Safety
/// `pointer` is null, or valid for reads and writes of `count` values during `'a`.
pub(crate) unsafe fn values_mut<'a, T>(
    pointer: *mut T,
    count: usize,
    what: &str,
) -> Result<&'a mut [T]> {
    if count == 0 {
        return Ok(&mut []);
    }
    expect_size::<T>(count, what)?;
    expect_usable(pointer, what)?;
    // SAFETY: as the caller promises; the length fits into the address space.
    Ok(unsafe { slice::from_raw_parts_mut(pointer, count) })
}

fn expect_size<T>(count: usize, what: &str) -> Result<()> {
    let bytes = count.checked_mul(size_of::<T>());
    match bytes.is_some_and(|bytes| isize::try_from(bytes).is_ok()) {
        true => Ok(()),
        false => Err(Failure::arguments(format!("{what}: no memory has {count} of them"))),
    }
}

/// Returns a text in UTF-8.
///
/// # Safety
/// `pointer` is null, or points to a text that ends with a null byte and lives during `'a`.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Result<&'a str> {
    if pointer.is_null() {
        return Err(null(what));
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| Failure::arguments(format!("{what} must be UTF-8")))
}

/// Returns a path. On Unix it may have any bytes, elsewhere it must be UTF-8.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn path(pointer: *const c_char, what: &str) -> Result<PathBuf> {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        if pointer.is_null() {
            return Err(null(what));
        }
        // SAFETY: as the caller promises.
        let bytes = unsafe { CStr::from_ptr(pointer) }.to_bytes();
        Ok(std::ffi::OsStr::from_bytes(bytes).into())
    }
    #[cfg(not(unix))]
    // SAFETY: as the caller promises.
    unsafe {
        text(pointer, what).map(PathBuf::from)
    }
}

/// Returns a list of paths.
///
/// # Safety
/// `pointers` is null, or valid for reads of `count` pointers, each as for [`text`].
pub(crate) unsafe fn paths(
    pointers: *const *const c_char,
    count: usize,
    what: &str,
) -> Result<Vec<PathBuf>> {
    // SAFETY: as the caller promises.
    let pointers = unsafe { values(pointers, count, what) }?;
    // SAFETY: as the caller promises.
    let named = |(number, &pointer)| unsafe { path(pointer, &format!("{what}[{number}]")) };
    pointers.iter().enumerate().map(named).collect()
}

/// A shard that a call reads.
pub(crate) struct ReadShard(*const u8, usize);

impl AsRef<[u8]> for ReadShard {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `CallShards::new` promised that the memory is valid and is not written.
        unsafe { slice::from_raw_parts(self.0, self.1) }
    }
}

/// A shard that a call writes.
pub(crate) struct WrittenShard(*mut u8, usize);

impl AsMut<[u8]> for WrittenShard {
    fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: `CallShards::new` promised that the memory is valid, and checked that no other
        // shard of the call overlaps it.
        unsafe { slice::from_raw_parts_mut(self.0, self.1) }
    }
}

/// The shards of a call.
pub(crate) struct CallShards {
    pub(crate) sources: SmallVec<[ReadShard; ON_STACK]>,
    pub(crate) targets: SmallVec<[WrittenShard; ON_STACK]>,
}

impl CallShards {
    /// Takes the shards that a call reads and the shards that it writes, each with its length.
    ///
    /// # Errors
    /// If a pointer is null although its shard has bytes, or if a target overlaps another shard.
    ///
    /// # Safety
    /// Pointers that are not null are valid for their lengths, the targets for writes, while the
    /// shards are used; no other code writes the sources, or reads or writes the targets.
    pub(crate) unsafe fn new(
        sources: impl IntoIterator<Item = (*const u8, usize)>,
        targets: impl IntoIterator<Item = (*mut u8, usize)>,
    ) -> Result<Self> {
        let dangling = ptr::NonNull::<u8>::dangling().as_ptr();
        let mut shards = Self { sources: SmallVec::new(), targets: SmallVec::new() };
        for (number, (start, bytes)) in sources.into_iter().enumerate() {
            expect_shard(start, bytes, "read", number)?;
            let start = if bytes == 0 { dangling.cast_const() } else { start };
            shards.sources.push(ReadShard(start, bytes));
        }
        for (number, (start, bytes)) in targets.into_iter().enumerate() {
            expect_shard(start, bytes, "computed", number)?;
            let start = if bytes == 0 { dangling } else { start };
            shards.targets.push(WrittenShard(start, bytes));
        }
        shards.expect_apart().map(|()| shards)
    }

    /// Checks that no target overlaps another shard. Shards are sorted by their places: a call may
    /// have some hundreds, and to compare each with each would take longer than a small call.
    fn expect_apart(&self) -> Result<()> {
        let sources = self.sources.iter().map(|shard| (shard.0 as usize, shard.1)).enumerate();
        let targets = self.targets.iter().map(|shard| (shard.0 as usize, shard.1)).enumerate();
        let sources = sources.map(|(number, place)| (place, CallPart::Source(number)));
        let targets = targets.map(|(number, place)| (place, CallPart::Target(number)));
        let filled = sources.chain(targets).filter(|&((_, bytes), _)| bytes > 0);
        let mut all: SmallVec<[_; ON_STACK]> = filled.collect();
        all.sort_unstable_by_key(|&((start, _), _)| start);
        // Where the memory that has been passed ends, and the shard that ends there: of sources,
        // and of targets.
        let (mut read, mut written) = ((0, 0), (0, 0));
        for ((start, bytes), part) in all {
            match part {
                CallPart::Target(number) if start < written.0 => {
                    return Err(both_written(written.1, number));
                }
                CallPart::Target(number) if start < read.0 => return Err(overlap(number, read.1)),
                CallPart::Source(number) if start < written.0 => {
                    return Err(overlap(written.1, number));
                }
                CallPart::Target(number) => written = (start + bytes, number),
                CallPart::Source(number) => read = read.max((start + bytes, number)),
            }
        }
        Ok(())
    }
}

/// What a call does with a shard, and the shard's number among those of its part.
#[derive(Clone, Copy)]
enum CallPart {
    Source(usize),
    Target(usize),
}

fn overlap(target: usize, source: usize) -> Failure {
    Failure::arguments(format!(
        "shard {target} of those that are computed overlaps shard {source} of those that are read"
    ))
}

fn both_written(a: usize, b: usize) -> Failure {
    let (a, b) = (a.min(b), a.max(b));
    Failure::arguments(format!("shards {a} and {b} of those that are computed overlap"))
}

fn expect_shard(start: *const u8, bytes: usize, what: &str, number: usize) -> Result<()> {
    let shard = || format!("shard {number} of those that are {what}");
    if start.is_null() && bytes > 0 {
        return Err(null(&shard()));
    }
    let fits = (start as usize).checked_add(bytes).is_some() && isize::try_from(bytes).is_ok();
    match fits {
        true => Ok(()),
        false => {
            let message = format!("{} cannot be {bytes} bytes at {start:p}", shard());
            Err(Failure::arguments(message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether shards at these places of one piece of memory are refused.
    fn is_refused(sources: &[(usize, usize)], targets: &[(usize, usize)]) -> bool {
        let mut memory = [0_u8; 64];
        let start = memory.as_mut_ptr();
        let at = |&(at, bytes): &(usize, usize)| (start.wrapping_add(at), bytes);
        let sources = sources.iter().map(at).map(|(start, bytes)| (start.cast_const(), bytes));
        // SAFETY: all places lie in `memory`, which no other code uses.
        unsafe { CallShards::new(sources, targets.iter().map(at)) }.is_err()
    }

    #[test]
    fn targets_overlap_nothing() {
        assert!(!is_refused(&[(0, 16), (16, 16)], &[(32, 16), (48, 16)]));
        assert!(!is_refused(&[(0, 16), (8, 16)], &[(32, 16)]), "sources may overlap");
        assert!(!is_refused(&[(0, 16)], &[(8, 0)]), "an empty shard overlaps nothing");
        assert!(is_refused(&[(0, 16)], &[(15, 16)]));
        assert!(is_refused(&[(0, 16)], &[(0, 16)]));
        assert!(is_refused(&[(16, 16)], &[(8, 32)]));
        assert!(is_refused(&[], &[(0, 16), (16, 16), (31, 1)]));
    }

    #[test]
    fn overlaps_are_found_wherever_the_shards_lie() {
        let places: Vec<_> = (0..5).flat_map(|at| (0..4).map(move |bytes| (at, bytes))).collect();
        let bytes_of = |(at, bytes)| at..at + bytes;
        let share = |a, b| bytes_of(a).any(|byte| bytes_of(b).contains(&byte));
        for &a in &places {
            for &b in &places {
                for &c in &places {
                    let [ab, ac, bc] = [share(a, b), share(a, c), share(b, c)];
                    assert_eq!(is_refused(&[], &[a, b, c]), ab || ac || bc, "{a:?} {b:?} {c:?}");
                    assert_eq!(is_refused(&[a], &[b, c]), ab || ac || bc, "{a:?} {b:?} {c:?}");
                    assert_eq!(is_refused(&[a, b], &[c]), ac || bc, "{a:?} {b:?} {c:?}");
                }
            }
        }
    }

    #[test]
    fn null_is_refused_where_there_are_bytes() {
        let read = |bytes| [(ptr::null::<u8>(), bytes)];
        // SAFETY: null pointers are allowed.
        unsafe {
            assert!(CallShards::new(read(1), []).is_err());
            assert!(CallShards::new(read(0), []).is_ok());
            assert!(CallShards::new([], [(ptr::null_mut(), usize::MAX)]).is_err());
            assert!(values::<u64>(ptr::null(), 1, "").is_err());
            assert!(values::<u64>(ptr::dangling(), usize::MAX, "").is_err());
            assert!(values::<u64>(ptr::null(), 0, "").is_ok_and(<[u64]>::is_empty));
            assert!(text(ptr::null(), "").is_err());
            assert!(optional::<u64>(ptr::null(), "").is_ok_and(|value| value.is_none()));
            assert!(optional(ptr::without_provenance::<u64>(9), "").is_err());
        }
    }
}
