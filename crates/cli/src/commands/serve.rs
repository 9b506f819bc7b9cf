//! `paritas serve`: a gateway for programs that speak S3.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use paritas_gateway::{DoorOptions, Gateway, Keys, Tls, UpkeepFindings};
use paritas_report::volumes::ServeLine;
use paritas_volume::{Error, ErrorKind, Result, Upkeep, Volume, keep, run_until_told};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinSet};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::serve::{LogForm, Serve};
use crate::commands::Outcome;
use crate::exit::{self, Exit};
use crate::output::Output;

/// Serves until the user ends it.
pub fn run(args: &Serve, output: &Output) -> Outcome {
    begin_log(args, output);
    let job = ServeJob { args };
    let first = job.gateway()?;
    let work = |stop| {
        exit::at_second_signal(&Arc::default());
        job.run(first, output, stop)
    };
    run_until_told(work)?;
    Ok(Exit::Done)
}

/// What all gateways have that serve at an address one after the other: whenever the volume file
/// lists other nodes, and when the signal SIGHUP comes, another gateway takes the new requests, and
/// the one before it finishes its own.
struct ServeJob<'a> {
    args: &'a Serve,
}

/// A gateway with the nodes, keys and certificates that the files held when it was made, and its
/// upkeep.
struct KeptGateway {
    volume: Arc<Volume>,
    gateway: Gateway,
    upkeep: BoxFuture<'static, ()>,
}

/// The signals SIGHUP since this was made. Systems without it have none.
struct Hangups(#[cfg(unix)] tokio::signal::unix::Signal);

impl Hangups {
    fn new() -> Result<Self> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let failed = |error| {
                Error::new(ErrorKind::Io, format!("cannot wait for SIGHUP: {error}")).because(error)
            };
            signal(SignalKind::hangup()).map(Self).map_err(failed)
        }
        #[cfg(not(unix))]
        Ok(Self())
    }

    async fn next(&mut self) {
        #[cfg(unix)]
        if self.0.recv().await.is_some() {
            return;
        }
        std::future::pending().await
    }
}

impl ServeJob<'_> {
    fn gateway(&self) -> Result<KeptGateway> {
        let args = self.args;
        let keys = match &args.keys {
            Some(file) => Keys::read(file)?,
            None => Keys::open(),
        };
        let tls = match &args.tls[..] {
            [certificates, key] => {
                Some(Tls { certificates: certificates.clone(), key: key.clone() })
            }
            _ => None,
        };
        let volume = Arc::new(Volume::open(&args.volume, paritas_tune::codec_options)?);
        let options = DoorOptions {
            connections: args.connections,
            memory: args.memory,
            has_public_pages: args.public_pages,
            domain: args.domain.clone(),
        };
        let keys = keys.read_only(args.read_only);
        let gateway = Gateway::new(Arc::clone(&volume), keys, tls.as_ref(), options)?;
        let upkeep = match args.no_upkeep || args.read_only {
            true => std::future::pending().boxed(),
            false => look_after(args, gateway.findings())?.boxed(),
        };
        Ok(KeptGateway { volume, gateway, upkeep })
    }

    async fn run(
        &self,
        first: KeptGateway,
        output: &Output,
        stop: BoxFuture<'static, ()>,
    ) -> Result<()> {
        let listener = TcpListener::bind(&self.args.listen).await;
        let listener = listener.and_then(TcpListener::into_std);
        let listener = listener.map_err(|error| self.cannot_listen(error))?;
        let mut hangups = Hangups::new()?;
        self.tell(&listener, output)?;
        let stop = stop.shared();
        let (mut gateways, mut now) = (JoinSet::new(), first);
        loop {
            let own = listener.try_clone().and_then(TcpListener::from_std);
            let own = own.map_err(|error| self.cannot_listen(error))?;
            let (_end, ended) = oneshot::channel::<()>();
            let KeptGateway { volume, gateway, upkeep } = now;
            gateways.spawn(gateway.serve_in_turn(own, ended.map(drop), stop.clone()));
            now = tokio::select! {
                next = self.next(&volume, &mut hangups) => next,
                () = upkeep => return Ok(()),
                served = first_end(&mut gateways) => return served,
                () = stop.clone() => break,
            };
        }
        // What was begun is finished.
        while let Some(served) = gateways.join_next().await {
            joined(served)?;
        }
        Ok(())
    }

    /// Waits until the volume file lists other nodes, or SIGHUP comes. Returns a gateway that is
    /// made from what the files hold now.
    async fn next(&self, volume: &Volume, hangups: &mut Hangups) -> KeptGateway {
        loop {
            let why = tokio::select! {
                () = volume.until_other_nodes() => "the volume file lists other nodes",
                () = hangups.next() => "SIGHUP",
            };
            match self.gateway() {
                Ok(next) => {
                    tracing::info!(why, "the files are read anew, and used from now on");
                    return next;
                }
                Err(error) => {
                    tracing::warn!(why, %error, "the files are not used: one cannot be read");
                }
            }
        }
    }

    fn tell(&self, listener: &std::net::TcpListener, output: &Output) -> Result<()> {
        let address = listener.local_addr().map_err(|error| self.cannot_listen(error))?;
        let scheme = if !self.args.tls.is_empty() { "https" } else { "http" };
        let endpoint = format!("{scheme}://{address}");
        let line = ServeLine { endpoint: endpoint.clone(), page: format!("{endpoint}/-/") };
        output.result(line, || format!("serving S3 at {endpoint}; its page is {endpoint}/-/"));
        Ok(())
    }

    fn cannot_listen(&self, error: std::io::Error) -> Error {
        let hint = match error.kind() {
            std::io::ErrorKind::InvalidInput => {
                "; give an address and a port, as in 127.0.0.1:9000"
            }
            _ => "",
        };
        let listen = &self.args.listen;
        Error::parameters(format!("cannot listen at {listen}: {error}{hint}")).because(error)
    }
}

/// Returns what made a gateway end before it was told to, which one that was told to end without a
/// fault does not.
async fn first_end(gateways: &mut JoinSet<Result<()>>) -> Result<()> {
    loop {
        match gateways.join_next().await {
            Some(served) => joined(served)?,
            None => std::future::pending().await,
        }
    }
}

fn joined(served: std::result::Result<Result<()>, JoinError>) -> Result<()> {
    served.map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))?
}

/// Opens the volume again for work in the background, looks after it, and logs and notes what
/// fails.
fn look_after(
    args: &Serve,
    findings: Arc<UpkeepFindings>,
) -> Result<impl Future<Output = ()> + use<>> {
    let volume = Volume::open(&args.volume, paritas_tune::codec_options)?;
    let volume = volume.in_background(args.background.rate);
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
