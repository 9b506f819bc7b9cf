//! LT codes in the lab: throughput side by side with the `raptorq` crate, and the figures of the 2004
//! evaluation. `lab/lt.py` runs it and prints tables.
//!
//! ```text
//! fountain bench SPEC ROUNDS KIB       encode and decode, in pairs with raptorq's
//! fountain raptorq encode|decode KIB   raptorq's sample for every line of input (bench runs this)
//! fountain variants C,C,… DELTA,DELTA,… ROUNDS KIB   throughput of every variant of the evaluation, in pairs with table 7
//! fountain tables RUNS                 averages of the evaluation's tables, by simulation of graphs
//! fountain curve RUNS                  blocks needed against XORs, of many distributions
//! fountain defaults RUNS K,K,…         what distributions need over many k and n
//! fountain freedom RUNS                how robust the variants are
//! fountain system RUNS                 network against computation (section VIII)
//! ```
//!
//! Everything printed is CSV.

mod bench;
#[path = "../../../crates/core/tests/common/printed.rs"]
mod printed;
mod simulate;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<usize>().expect("a number");
    match words[..] {
        ["bench", spec, rounds, kib] => bench::peers(spec, number(rounds), number(kib) << 10),
        ["raptorq", kind, kib] => bench::serve(kind, number(kib) << 10),
        ["variants", c, delta, rounds, kib] => {
            bench::variants(c, delta, number(rounds), number(kib) << 10);
        }
        ["tables", runs] => simulate::tables(number(runs)),
        ["curve", runs] => simulate::curve(number(runs)),
        ["defaults", runs, data] => {
            let data: Vec<usize> = data.split(',').map(number).collect();
            simulate::defaults(number(runs), &data);
        }
        ["freedom", runs] => simulate::freedom(number(runs)),
        ["system", runs] => simulate::system(number(runs)),
        _ => panic!("see the top of lab/fountain/src/main.rs for what it takes"),
    }
}
