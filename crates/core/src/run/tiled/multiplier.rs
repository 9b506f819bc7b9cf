//! Multiplying bytes by elements of GF(2^8), in the way that the instruction set offers.

use crate::define::field::Field;
use crate::define::made::FirstMade;
use crate::define::tower::CantorBasis;
use crate::plan::lower::ByteMap;
use crate::run::tiled::vector::Vector;

/// How a machine multiplies every byte of a register by an element of GF(2^8).
///
/// # Safety
/// The methods may only be called where the processor has the instruction set; they are meant to
/// be inlined into functions with the matching `target_feature`.
pub(super) unsafe trait Multiplier<V: Vector> {
    /// A factor in the form that the machine takes.
    type Factor: Copy + 'static;

    /// The factors of all bytes of a field of bytes.
    fn factors(field: Field) -> &'static [Self::Factor; 256];

    /// The maps between symbols of Leopard's long codes and elements of the tower.
    fn leopard() -> &'static LeopardMaps<Self::Factor>;

    /// # Safety
    /// The processor has the instruction set.
    unsafe fn times(vector: V, factor: &Self::Factor) -> V;

    /// Does work in a separate function, in which the instruction set is enabled. A kernel with
    /// many variants runs each variant in this way: one function with all of them takes a compiler
    /// minutes.
    ///
    /// # Safety
    /// The processor has the instruction set; the rest is the work's contract.
    unsafe fn apart<W: KernelWork>(work: W);
}

/// Work on vectors that is inlined into a function in which an instruction set is enabled.
pub(super) trait KernelWork {
    /// # Safety
    /// The type that implements this trait states when its work may be done.
    unsafe fn run(self);
}

/// Multiplies by matrices of 8 by 8 bits (GFNI).
#[cfg(target_arch = "x86_64")]
pub(super) struct Matrices;

/// Multiplies by looking half bytes up in two tables of 16 bytes.
pub(super) struct Shuffles;

/// Multiplies bit by bit.
pub(super) struct Bits;

/// The factors of all bytes, for both ways in which a byte stands for an element.
struct AllFactors<T> {
    usual: FirstMade<[T; 256]>,
    cantor: FirstMade<[T; 256]>,
}

impl<T> AllFactors<T> {
    const fn new() -> Self {
        Self { usual: FirstMade::new(), cantor: FirstMade::new() }
    }

    /// Returns the factors of a field, which is one of the two, in the form that `form` gives to a
    /// map of bytes.
    #[inline(always)]
    fn of(&'static self, field: Field, form: impl Fn(ByteMap) -> T) -> &'static [T; 256] {
        match field.has_powers() {
            true => self.usual.get(|| of_all_bytes(Field::bytes(), form)),
            false => self.cantor.get(|| of_all_bytes(Field::cantor(), form)),
        }
    }
}

fn of_all_bytes<T>(field: Field, form: impl Fn(ByteMap) -> T) -> [T; 256] {
    let map = |factor: usize| form(ByteMap::of_product(field, factor as u32, 0, 0));
    std::array::from_fn(map)
}

/// Maps of bytes from symbols of Leopard's long codes to elements of the tower, and back. Each has
/// three parts, which take low bytes to low bytes, high bytes to low bytes, and high bytes to high
/// bytes. Low bytes stand for elements of GF(2^8), so they do not affect high bytes.
pub(super) type LeopardMaps<T> = [[T; 3]; 2];

fn leopard_maps<T>(form: impl Fn(ByteMap) -> T) -> LeopardMaps<T> {
    [CantorBasis::Leopard.elements(), CantorBasis::Leopard.numbers()].map(|images| {
        let part = |from: usize, to: usize| {
            form(ByteMap(std::array::from_fn(|bit| images[8 * from + bit].to_le_bytes()[to])))
        };
        [part(0, 0), part(1, 0), part(1, 1)]
    })
}

#[cfg(target_arch = "x86_64")]
impl Matrices {
    pub(super) fn all(field: Field) -> &'static [u64; 256] {
        static ALL: AllFactors<u64> = AllFactors::new();
        ALL.of(field, Self::form)
    }

    pub(super) fn all_of_leopard() -> &'static LeopardMaps<u64> {
        static ALL: FirstMade<LeopardMaps<u64>> = FirstMade::new();
        ALL.get(|| leopard_maps(Self::form))
    }

    fn form(map: ByteMap) -> u64 {
        u64::from_le_bytes(map.matrix())
    }
}

/// The images of the values of a low half byte, and of a high one.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(32))]
pub(super) struct Tables(pub(super) [[u8; 16]; 2]);

impl Shuffles {
    pub(super) fn all(field: Field) -> &'static [Tables; 256] {
        static ALL: AllFactors<Tables> = AllFactors::new();
        ALL.of(field, |map| Tables(map.tables()))
    }

    pub(super) fn all_of_leopard() -> &'static LeopardMaps<Tables> {
        static ALL: FirstMade<LeopardMaps<Tables>> = FirstMade::new();
        ALL.get(|| leopard_maps(|map| Tables(map.tables())))
    }
}

/// A one in every byte of a word.
const ONES: u64 = u64::from_le_bytes([1; 8]);

/// Returns the images of the eight bits of a byte, each in every byte of a word.
fn images(map: ByteMap) -> [u64; 8] {
    map.0.map(|image| u64::from(image) * ONES)
}

// SAFETY: every processor has the instructions.
unsafe impl Multiplier<u64> for Bits {
    /// The images of the eight bits of a byte, each in every byte of a word.
    type Factor = [u64; 8];

    fn factors(field: Field) -> &'static [[u64; 8]; 256] {
        static ALL: AllFactors<[u64; 8]> = AllFactors::new();
        ALL.of(field, images)
    }

    fn leopard() -> &'static LeopardMaps<[u64; 8]> {
        static ALL: FirstMade<LeopardMaps<[u64; 8]>> = FirstMade::new();
        ALL.get(|| leopard_maps(images))
    }

    #[inline(always)]
    unsafe fn times(vector: u64, factor: &[u64; 8]) -> u64 {
        let product = |(bit, image): (usize, &u64)| ((vector >> bit & ONES) * 0xFF) & image;
        factor.iter().enumerate().map(product).fold(0, |sum, product| sum ^ product)
    }

    #[inline(never)]
    unsafe fn apart<W: KernelWork>(work: W) {
        // SAFETY: the caller's contract.
        unsafe { work.run() }
    }
}
