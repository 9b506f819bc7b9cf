//! The tests of the gateway from outside, in one program: linking a program for each file took
//! half of the time of a build.

mod clients;
mod fixture;
mod hostile;
mod requests;
mod signed;
mod uploads;
