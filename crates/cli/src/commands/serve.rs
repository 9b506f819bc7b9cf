//! `paritas serve`: a gateway for programs that speak S3.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use paritas_gateway::{DoorOptions, Gateway, Keys, Tls};
use paritas_report::volumes::ServeLine;
use paritas_volume::{Error, ErrorKind, Result, Upkeep, Volume, keep, run_until_told};
use tokio::net::TcpListener;
use tokio::task::JoinError;
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
    let files = ServedFiles::read(args)?;
    let job = ServeJob { args, gateway: files.gateway(args)? };
    let work = |stop| {
        exit::at_second_signal(&Arc::default());
        job.run(files, output, stop)
    };
    run_until_told(work)?;
    Ok(Exit::Done)
}

/// A gateway that serves at an address. Whenever the volume file lists other nodes, and when the
/// signal SIGHUP comes, all files are read anew.
struct ServeJob<'a> {
    args: &'a Serve,
    gateway: Gateway,
}

/// What the volume file and the files of keys and certificate held when they were read.
struct ServedFiles {
    volume: Arc<Volume>,
    /// The same volume for work in the background, if this gateway looks after it.
    kept: Option<Volume>,
    keys: Keys,
    tls: Option<Tls>,
}

impl ServedFiles {
    fn read(args: &Serve) -> Result<Self> {
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
        let open = || Volume::open(&args.volume, paritas_tune::codec_options);
        let kept = match args.no_upkeep || args.read_only {
            true => None,
            false => Some(open()?.in_background(args.background.rate)),
        };
        Ok(Self { volume: Arc::new(open()?), kept, keys: keys.read_only(args.read_only), tls })
    }

    fn gateway(&self, args: &Serve) -> Result<Gateway> {
        let options = DoorOptions {
            connections: args.connections,
            memory: args.memory,
            has_public_pages: args.public_pages,
            domain: args.domain.clone(),
        };
        Gateway::new(Arc::clone(&self.volume), self.keys.clone(), self.tls.as_ref(), options)
    }
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
    async fn run(
        &self,
        mut files: ServedFiles,
        output: &Output,
        stop: BoxFuture<'static, ()>,
    ) -> Result<()> {
        let listener = TcpListener::bind(&self.args.listen).await;
        let listener = listener.map_err(|error| self.cannot_listen(error))?;
        let mut hangups = Hangups::new()?;
        self.tell(&listener, output)?;
        let stop = stop.shared();
        let mut served = tokio::spawn(self.gateway.clone().serve(listener, stop.clone()));
        loop {
            files = tokio::select! {
                next = self.renewed(&files.volume, &mut hangups) => next,
                () = self.look_after(files.kept) => return Ok(()),
                served = &mut served => return joined(served),
                () = stop.clone() => break,
            };
        }
        joined(served.await)
    }

    /// Waits until the volume file lists other nodes, or SIGHUP comes, and renews the gateway by
    /// what the files hold now. Returns what they hold. A file with a flaw changes nothing.
    async fn renewed(&self, volume: &Volume, hangups: &mut Hangups) -> ServedFiles {
        loop {
            let why = tokio::select! {
                () = volume.until_other_nodes() => "the volume file lists other nodes",
                () = hangups.next() => "SIGHUP",
            };
            let renewed = ServedFiles::read(self.args).and_then(|files| {
                let (volume, keys) = (Arc::clone(&files.volume), files.keys.clone());
                self.gateway.renew(volume, keys, files.tls.as_ref())?;
                Ok(files)
            });
            match renewed {
                Ok(files) => {
                    tracing::info!(why, "the files are read anew, and used from now on");
                    return files;
                }
                Err(error) => {
                    tracing::warn!(why, %error, "the files are not used: one cannot be read");
                }
            }
        }
    }

    /// Looks after a volume, if there is one to look after, and logs and notes what fails.
    async fn look_after(&self, volume: Option<Volume>) {
        let Some(volume) = volume else { return std::future::pending().await };
        let findings = self.gateway.findings();
        let told = |doing: &str, error: &Error| {
            tracing::warn!(doing, %error, "upkeep");
            findings.note(doing, error);
        };
        keep(&volume, Upkeep::default(), &told).await;
    }

    fn tell(&self, listener: &TcpListener, output: &Output) -> Result<()> {
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

fn joined(served: std::result::Result<Result<()>, JoinError>) -> Result<()> {
    served.map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))?
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
