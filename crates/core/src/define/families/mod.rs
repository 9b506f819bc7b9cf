//! The families: one file each, and the table that finds them by name.
//!
//! A family turns the parameters of a [`Spec`] into a [`Code`] with a [`Pin`], and rebuilds the
//! same code from that pin. `define` may choose defaults from any table. `rebuild` may use only the
//! spec and the pin, so that stored data outlives the tables.

mod array;
mod backblaze;
mod blaum_roth;
mod cauchy;
mod cauchy_good;
mod cauchy_orig;
mod density;
mod dpg;
mod evenodd;
mod isal;
mod leopard;
mod liber8tion;
mod liberation;
mod lt;
mod matrix;
mod qfs;
mod raid6;
mod rdp;
mod reed_solomon;
mod star;
mod words;
mod xcode;
mod zfec;

use std::str::FromStr;

use crate::define::code::Code;
use crate::define::pin::Pin;
use crate::define::spec::Spec;
use crate::error::{Error, Result};

/// One family of codes.
#[derive(Debug)]
pub struct Family {
    /// The name that begins a spec.
    pub name: &'static str,
    /// A one-line description.
    pub summary: &'static str,
    /// The values that its parameters may take.
    pub limits: &'static str,
    /// An example of a spec.
    pub example: &'static str,
    define: fn(&Spec) -> Result<Code>,
    rebuild: fn(&Spec, &Pin) -> Result<Code>,
}

/// All families, by name.
pub const FAMILIES: &[Family] = &[
    backblaze::FAMILY,
    dpg::BBDPG,
    blaum_roth::FAMILY,
    cauchy::FAMILY,
    cauchy_good::FAMILY,
    cauchy_orig::FAMILY,
    dpg::DPG,
    evenodd::FAMILY,
    isal::CAUCHY,
    isal::RS,
    leopard::LEOPARD8,
    liber8tion::FAMILY,
    liberation::FAMILY,
    lt::FAMILY,
    matrix::FAMILY,
    qfs::FAMILY,
    raid6::FAMILY,
    rdp::FAMILY,
    reed_solomon::FAMILY,
    star::FAMILY,
    xcode::FAMILY,
    zfec::FAMILY,
];

impl Code {
    /// Returns the code that a spec names.
    ///
    /// # Errors
    /// If there is no family of that name, a parameter is missing or unknown, or the family cannot
    /// serve the parameters. The message says what would be legal.
    pub fn new(spec: &Spec) -> Result<Self> {
        (family(spec)?.define)(spec)
    }

    /// Returns the code that a canonical spec and a pin name, whatever the defaults of this version
    /// are.
    ///
    /// # Errors
    /// If the pin does not fit the family and the spec.
    pub fn rebuild(spec: &Spec, pin: &Pin) -> Result<Self> {
        (family(spec)?.rebuild)(spec, pin)
    }
}

impl FromStr for Code {
    type Err = Error;

    /// Makes the code that a spec in text form names, such as `10+4` or `rdp:k=6`.
    fn from_str(text: &str) -> Result<Self> {
        Self::new(&text.parse()?)
    }
}

/// Rebuilds a code whose matrix follows from its spec alone, because the construction leaves no
/// choice or because existing data of other software has fixed it for ever. The pin must equal that
/// of a new code.
fn rebuild_fixed(spec: &Spec, pin: &Pin, define: fn(&Spec) -> Result<Code>) -> Result<Code> {
    let code = define(spec)?;
    if code.pin() == pin {
        return Ok(code);
    }
    Err(Error::parameters(format!("{spec} has {}, but is pinned with {pin}", code.pin())))
}

fn family(spec: &Spec) -> Result<&'static Family> {
    FAMILIES.iter().find(|family| family.name == spec.family()).ok_or_else(|| {
        let names: Vec<&str> = FAMILIES.iter().map(|family| family.name).collect();
        let long = match spec.family() {
            leopard::LEOPARD16 => ". It is a long code, which only the Rust library has",
            _ => "",
        };
        Error::spec(format!(
            "there is no code family `{}`; there are {}{long}",
            spec.family(),
            names.join(", ")
        ))
    })
}
