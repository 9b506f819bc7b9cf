//! `paritas tune`: measures which settings are fastest on this machine, and remembers them.

use paritas::research::Pass;
use paritas::{Code, CodecOptions, Spec};
use paritas_report::machine::{ChoiceEntry, DecisionLine, SettingsEntry, TuningLine};
use paritas_tune::measure::Rounds;
use paritas_tune::{Choice, Decision, PACKET_ROUNDS, PACKET_SETS, Tuning, USUAL_CODES};

use crate::args::machine::Tune;
use crate::commands::Outcome;
use crate::exit::{Exit, Failure};
use crate::output::{Output, shown};

/// Measures, reports every decision, and remembers the result.
pub fn run(args: &Tune, output: &Output) -> Outcome {
    if args.forget {
        return forget(output);
    }
    let usual = || USUAL_CODES.iter().map(|code| code.parse()).collect::<Result<Vec<Spec>, _>>();
    let codes = if args.codes.is_empty() { usual()? } else { args.codes.clone() };
    // A code that does not exist is refused before anything is measured.
    codes.iter().try_for_each(|code| Code::new(code).map(drop))?;
    if args.packet {
        let mut options = CodecOptions::default().kernel(args.kernel);
        options.plan.pass = args.pass.map_or(options.plan.pass, Pass::from);
        let sets = args.set.map_or_else(|| PACKET_SETS.to_vec(), |set| vec![set]);
        let rounds = args.reps.map_or(PACKET_ROUNDS, |reps| Rounds::from_least(reps as usize));
        let report = |finding: &Decision| report(finding, output);
        paritas_tune::find_packets(&codes, &options, &sets, rounds, report)?;
        return Ok(Exit::Done);
    }
    let mut tuning = paritas_tune::find(&codes, |finding| report(finding, output))?;
    if args.dry_run {
        return Ok(Exit::Done);
    }
    let path = tuning.remember().map_err(|error| Failure::io("remembering the tuning", &error))?;
    let line = TuningLine::saved(settings(&tuning)?, (&path).into());
    output.result(line, || format!("remembered in {}", shown(&path)));
    Ok(Exit::Done)
}

fn forget(output: &Output) -> Outcome {
    let found = Tuning::forget().map_err(|error| Failure::io("forgetting the tuning", &error))?;
    let text =
        if found { "forgotten; the built-in defaults are used" } else { "nothing was remembered" };
    output.result(TuningLine::forgotten(found), || text.to_owned());
    Ok(Exit::Done)
}

fn report(finding: &Decision, output: &Output) {
    let Decision { question, about, choices, chosen, .. } = finding;
    let line = DecisionLine {
        question,
        about: about.clone(),
        chosen: chosen.clone(),
        choices: choices.iter().map(choice_entry).collect(),
    };
    output.result(line, || {
        let mut ranked: Vec<&Choice> = choices.iter().collect();
        ranked.sort_by(|a, b| b.ratio.median.total_cmp(&a.ratio.median));
        let ranked: Vec<String> = ranked.into_iter().map(text).collect();
        format!("{question} ({about}): {chosen}\n  GB/s: {}", ranked.join(", "))
    });
}

fn choice_entry(choice: &Choice) -> ChoiceEntry {
    let Choice { name, gbps, gbps_p90, ratio, .. } = choice;
    ChoiceEntry {
        name: name.clone(),
        gbps: *gbps,
        gbps_p90: *gbps_p90,
        ratio: ratio.median,
        ratio_low: ratio.low,
        ratio_high: ratio.high,
        pairs: ratio.pairs,
    }
}

/// Returns the entry for settings. It has the same fields as the remembered settings.
fn settings(tuning: &Tuning) -> Result<SettingsEntry, Failure> {
    let entry = serde_json::to_value(tuning).and_then(serde_json::from_value);
    entry.map_err(|error| Failure::internal(format!("settings cannot be reported: {error}")))
}

fn text(choice: &Choice) -> String {
    let Choice { name, gbps, ratio, .. } = choice;
    format!("{name} {gbps:.1} (x {:.2}, {:.2} to {:.2})", ratio.median, ratio.low, ratio.high)
}
