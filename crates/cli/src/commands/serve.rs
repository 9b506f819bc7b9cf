//! `paritas serve`: a gateway for programs that speak S3.

use std::path::Path;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use paritas_gateway::{DoorOptions, Gateway, Keys, Tls, UpkeepFindings};
use paritas_report::volumes::ServeLine;
use paritas_volume::{Error, Result, Upkeep, Volume, keep, run_until_told};
use tokio::net::TcpListener;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::serve::{LogForm, Serve};
use crate::commands::Outcome;
use crate::commands::volume::open;
use crate::exit::{self, Exit};
use crate::output::Output;

/// Serves until the user ends it.
pub fn run(args: &Serve, output: &Output) -> Outcome {
    begin_log(args, output);
    let keys = match &args.keys {
        Some(file) => Keys::read(file)?,
        None => Keys::open(),
    };
    let keys = keys.read_only(args.read_only);
    let tls = match &args.tls[..] {
        [certificates, key] => Some(Tls { certificates: certificates.clone(), key: key.clone() }),
        _ => None,
    };
    let volume = Arc::new(open(&args.volume)?);
    let options = DoorOptions {
        connections: args.connections,
        memory: args.memory,
        has_public_pages: args.public_pages,
        domain: args.domain.clone(),
    };
    let gateway = Gateway::new(volume, keys, tls.as_ref(), options)?;
    let work = |stop| {
        exit::at_second_signal(&Arc::default());
        serve(args, gateway, tls.is_some(), output, stop)
    };
    run_until_told(work)?;
    Ok(Exit::Done)
}

async fn serve(
    args: &Serve,
    gateway: Gateway,
    is_secret: bool,
    output: &Output,
    stop: BoxFuture<'static, ()>,
) -> Result<()> {
    let failed = |error: std::io::Error| {
        let hint = match error.kind() {
            std::io::ErrorKind::InvalidInput => {
                "; give an address and a port, as in 127.0.0.1:9000"
            }
            _ => "",
        };
        Error::parameters(format!("cannot listen at {}: {error}{hint}", args.listen)).because(error)
    };
    let listener = TcpListener::bind(&args.listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let endpoint = format!("{}://{address}", if is_secret { "https" } else { "http" });
    let line = ServeLine { endpoint: endpoint.clone(), page: format!("{endpoint}/-/") };
    output.result(line, || format!("serving S3 at {endpoint}; its page is {endpoint}/-/"));
    let upkeep = match args.no_upkeep || args.read_only {
        true => std::future::pending().boxed(),
        false => look_after(&args.volume, args.background.rate, gateway.findings())?.boxed(),
    };
    tokio::select! {
        served = gateway.serve(listener, stop) => served,
        () = upkeep => Ok(()),
    }
}

/// Opens the volume again for work in the background, looks after it, and logs and notes what
/// fails.
fn look_after(
    path: &Path,
    rate: Option<paritas_volume::Rate>,
    findings: Arc<UpkeepFindings>,
) -> Result<impl Future<Output = ()> + use<>> {
    let volume = Volume::open(path, paritas_tune::codec_options)?.in_background(rate);
    Ok(async move {
        let told = |doing: &str, error: &Error| {
            tracing::warn!(doing, %error, "upkeep");
            findings.note(doing, error);
        };
        keep(&volume, Upkeep::default(), &told).await;
    })
}

/// Begins the log, on standard error. Each request has one line, even if it is refused; a quiet log
/// has failures alone. Beside results in JSON, it is in JSON, too.
fn begin_log(args: &Serve, output: &Output) {
    let least = if output.is_quiet() { LevelFilter::WARN } else { LevelFilter::INFO };
    let by_default = if output.is_json() { LogForm::Json } else { LogForm::Lines };
    let form = args.log.unwrap_or(by_default);
    let ours = Targets::new().with_default(least).with_target("s3s", LevelFilter::OFF);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false);
    let registry = tracing_subscriber::registry().with(ours);
    match form {
        LogForm::Lines => registry.with(lines.with_ansi(false)).init(),
        LogForm::Json => registry.with(lines.json().flatten_event(true)).init(),
        LogForm::None => {}
    }
}
