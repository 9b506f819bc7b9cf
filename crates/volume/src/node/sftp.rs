//! A folder of a host with an SSH server, by the program `ssh` and the server's subsystem `sftp`,
//! as a service of OpenDAL.
//!
//! OpenDAL's own service starts two `ssh` for each connection: one that logs in and goes on in the
//! background until it is told to end, and one that uses it. If the program is killed, the first
//! one is never told to end, and stays logged in for ever. Here each connection is one `ssh`, which
//! talks to this process through pipes. However the process ends, the pipes close, and `ssh` ends;
//! a server that no longer answers is given up after [`ALIVE`].
//!
//! A connection carries one file or request at a time, and is then used again. What a burst of
//! requests needs is closed when it has not been used for [`IDLE`].

use std::io::SeekFrom;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use futures::StreamExt;
use opendal::raw::{
    OpCopy, OpCreateDir, OpDelete, OpList, OpPresign, OpRead, OpRename, OpStat, OpWrite,
    RpCreateDir, RpPresign, RpRead, RpRename, RpStat, Service, ServiceInfo, Timestamp, oio,
};
use opendal::{
    Buffer, Builder, BytesRange, Capability, Error, ErrorKind, Metadata, MetadataBuilder,
    OperationContext, Result,
};
use openssh_sftp_client::error::SftpErrorKind;
use openssh_sftp_client::file::{File, TokioCompatFile};
use openssh_sftp_client::fs::ReadDir;
use openssh_sftp_client::metadata::MetaData;
use openssh_sftp_client::{Error as SftpError, Sftp, SftpOptions};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::contact::NoConnection;
use super::location::SshHost;

/// Number of connections to a host from which on connections are shared.
const MOST_CONNECTIONS: usize = 64;

/// Largest number of connections that are made at a time. Servers refuse at random if more than ten
/// clients are about to log in (`MaxStartups`).
const MOST_LOGINS: usize = 8;

/// Time after which a connection that others can stand in for is closed.
const IDLE: Duration = Duration::from_secs(60);

/// Time limit for making a connection.
const CONNECTING: Duration = Duration::from_secs(10);

/// Seconds after which `ssh` checks whether a silent server is alive. After three checks without an
/// answer it gives up.
const ALIVE: u64 = 15;

/// Largest number of bytes that are read at a time. Servers send fewer.
const MOST_READ: u64 = 2 << 20;

/// Largest number of bytes of the messages of `ssh` that are kept.
const MOST_SAID: u64 = 4096;

/// What `ssh` says if the key of a host is another one than the one that is known.
const KEY_CHANGED: &str = "REMOTE HOST IDENTIFICATION HAS CHANGED";

/// A folder of a host.
#[derive(Debug, Default)]
pub(super) struct SftpFolder {
    /// The host.
    pub host: SshHost,
    /// The path of the folder.
    pub root: String,
    /// The file of the key. `None` tries the usual files.
    pub key: Option<PathBuf>,
    /// How `ssh` checks the host's key: `yes`, `accept-new` or `no`.
    pub host_key_checking: &'static str,
}

impl Builder for SftpFolder {
    type Config = ();

    fn build(mut self) -> Result<impl Service> {
        self.root.truncate(self.root.trim_end_matches('/').len());
        let logins = Semaphore::new(MOST_LOGINS);
        Ok(Host(Arc::new(Shared { folder: self, connections: Mutex::default(), logins })))
    }
}

/// A host, with its connections.
#[derive(Debug, Clone)]
struct Host(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    folder: SftpFolder,
    /// Connections that only this list holds are idle.
    connections: Mutex<Vec<Arc<Connection>>>,
    logins: Semaphore,
}

#[derive(Debug)]
struct Connection {
    sftp: Sftp,
    /// When it was last taken.
    taken: Mutex<Instant>,
    _ssh: Ssh,
}

/// A process `ssh`, which leads a group of its own. When this is dropped, the whole group is
/// killed: with `ProxyJump` or `ProxyCommand`, a second process has the connection to the host.
#[derive(Debug)]
struct Ssh(Child);

impl Drop for Ssh {
    fn drop(&mut self) {
        // A process that was not waited for keeps its number, so no other group can have it.
        if let Some(group) = self.0.id().and_then(|id| Pid::from_raw(id as i32)) {
            // It may have ended already.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl SftpFolder {
    fn command(&self) -> Command {
        let mut ssh = Command::new("ssh");
        // Without a terminal, and without a shared connection that would outlive this one.
        ssh.args(["-T", "-S", "none"]);
        let alive = format!("ServerAliveInterval={ALIVE}");
        let checking = format!("StrictHostKeyChecking={}", self.host_key_checking);
        for option in [
            "BatchMode=yes",
            "ClearAllForwardings=yes",
            "ControlMaster=no",
            "ForwardAgent=no",
            "ForwardX11=no",
            "PermitLocalCommand=no",
            "RemoteCommand=none",
            "ServerAliveCountMax=3",
            &alive,
            &checking,
        ] {
            ssh.args(["-o", option]);
        }
        if let Some(key) = &self.key {
            ssh.args(["-o", "IdentitiesOnly=yes", "-i"]).arg(key);
        }
        // `ssh` does not read URIs whose hosts are addresses of IPv6.
        let SshHost { user, host, port } = &self.host;
        if let Some(user) = user {
            ssh.args(["-l", user]);
        }
        if let Some(port) = port {
            ssh.args(["-p", &port.to_string()]);
        }
        ssh.args(["-s", "--", host, "sftp"]);
        ssh.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C at a terminal must reach only this process, which then removes what it has begun.
        ssh.process_group(0).kill_on_drop(true);
        ssh
    }

    async fn connect(&self) -> Result<Connection> {
        let ssh = self.command().spawn().map_err(|error| not_started(&error))?;
        let mut ssh = Ssh(ssh);
        let pipes = ssh.0.stdin.take().zip(ssh.0.stdout.take()).zip(ssh.0.stderr.take());
        let ((stdin, stdout), stderr) =
            pipes.ok_or_else(|| no_connection(ErrorKind::Unexpected, "ssh has no pipes"))?;
        let said = tokio::spawn(said(stderr));
        match Sftp::new(stdin, stdout, SftpOptions::new()).await {
            Ok(sftp) => Ok(Connection { sftp, taken: Mutex::new(Instant::now()), _ssh: ssh }),
            Err(error) => Err(refused(&said.await.unwrap_or_default(), &error)),
        }
    }

    /// Returns the path of a file on the host.
    fn at(&self, path: &str) -> String {
        format!("{}/{}", self.root, path.trim_start_matches('/'))
    }
}

/// Returns the error for a program `ssh` that could not be started. If there is none, the node is
/// not lost, and another attempt is in vain.
fn not_started(error: &std::io::Error) -> Error {
    use std::io::ErrorKind::{NotFound, PermissionDenied};
    let kind = match error.kind() {
        NotFound | PermissionDenied => ErrorKind::PermissionDenied,
        _ => ErrorKind::Unexpected,
    };
    no_connection(kind, format!("the program ssh cannot be started: {error}"))
}

/// Returns the messages of `ssh`, once it has ended.
async fn said(stderr: ChildStderr) -> String {
    let mut said = Vec::new();
    let mut stderr = stderr.take(MOST_SAID);
    // If reading fails, the text read so far is used.
    let _ = stderr.read_to_end(&mut said).await;
    let _ = tokio::io::copy(&mut stderr.into_inner(), &mut tokio::io::sink()).await;
    String::from_utf8_lossy(&said).into_owned()
}

/// Converts the messages of an `ssh` that made no connection into an error. If there are none, the
/// error tells what its pipes showed. A refused login or key will be refused again, so it is not
/// repeated.
fn refused(said: &str, shown: &SftpError) -> Error {
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    if said.contains(KEY_CHANGED) {
        let place = lines.find(|line| line.starts_with("Offending")).unwrap_or("");
        // `ssh` of some systems tells the command, with the right file and port.
        let remedy = lines.find(|line| line.starts_with("ssh-keygen"));
        let message = format!(
            "the key of the host is not the one that is known for it ({place}); if the host was \
             set up anew, `{}` forgets its old key",
            remedy.unwrap_or("ssh-keygen -R '[HOST]:PORT'")
        );
        return no_connection(ErrorKind::PermissionDenied, message);
    }
    let Some(last) = lines.next_back() else {
        let why = match shown {
            SftpError::IOError(_) => {
                "the host ended the connection before its SFTP server answered"
            }
            _ => &format!("ssh: {shown}"),
        };
        return no_connection(ErrorKind::Unexpected, why);
    };
    let last = last.trim_start_matches("ssh: ");
    match () {
        () if last.contains("Permission denied") => {
            // A key that could not be used is the cause, although the login goes on without it.
            let key = said.lines().find(|line| line.starts_with("Load key"));
            let key = key.map(|line| format!("{}; ", line.trim())).unwrap_or_default();
            no_connection(ErrorKind::PermissionDenied, format!("ssh: {key}{last}"))
        }
        () if last.contains("Host key verification failed") => {
            let why = lines.next_back().unwrap_or(last);
            no_connection(ErrorKind::PermissionDenied, format!("ssh: {why}"))
        }
        () => no_connection(ErrorKind::Unexpected, format!("ssh: {last}")),
    }
}

/// Returns the error for a connection that could not be made. What is unexpected may be better at
/// the next attempt.
fn no_connection(kind: ErrorKind, why: impl Into<String>) -> Error {
    let error = Error::new(kind, "no connection").set_source(NoConnection(why.into()));
    if kind == ErrorKind::Unexpected { error.set_temporary() } else { error }
}

impl Connection {
    fn taken(&self) -> MutexGuard<'_, Instant> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Host {
    fn connections(&self) -> MutexGuard<'_, Vec<Arc<Connection>>> {
        self.0.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an idle connection, a new one, or, if there are too many, the least used one.
    async fn connection(&self) -> Result<Arc<Connection>> {
        if let Some(found) = self.found() {
            return Ok(found);
        }
        // The semaphore is never closed.
        let _login = self.0.logins.acquire().await;
        if let Some(found) = self.found() {
            return Ok(found);
        }
        let silent = |_| {
            let why = format!("the host has not answered within {} s", CONNECTING.as_secs());
            no_connection(ErrorKind::Unexpected, why)
        };
        let made = tokio::time::timeout(CONNECTING, self.0.folder.connect()).await;
        let made = Arc::new(made.map_err(silent)??);
        self.connections().push(Arc::clone(&made));
        Ok(made)
    }

    /// Returns an idle connection, or the least used one if there are too many. It is the first of
    /// them, so that the last ones rest.
    fn found(&self) -> Option<Arc<Connection>> {
        let mut connections = self.connections();
        connections.retain(|one| Arc::strong_count(one) > 1 || one.taken().elapsed() < IDLE);
        let least = connections.iter().min_by_key(|one| Arc::strong_count(one))?;
        let is_enough = Arc::strong_count(least) == 1 || connections.len() >= MOST_CONNECTIONS;
        is_enough.then(|| {
            *least.taken() = Instant::now();
            Arc::clone(least)
        })
    }

    /// Converts an error to an error of OpenDAL. If the connection failed, other idle connections
    /// may have failed as well, so they are not used again.
    fn failed(&self, connection: &Arc<Connection>, error: SftpError) -> Error {
        let kind = match &error {
            SftpError::SftpError(SftpErrorKind::NoSuchFile, _) => ErrorKind::NotFound,
            SftpError::SftpError(SftpErrorKind::PermDenied, _) => ErrorKind::PermissionDenied,
            SftpError::SftpError(SftpErrorKind::OpUnsupported, _)
            | SftpError::UnsupportedSftpProtocol { .. } => ErrorKind::Unsupported,
            _ => ErrorKind::Unexpected,
        };
        if !matches!(error, SftpError::SftpError(..)) {
            let is_used = |one: &Arc<Connection>| Arc::strong_count(one) > 1;
            self.connections().retain(|one| is_used(one) && !Arc::ptr_eq(one, connection));
        }
        let failure = Error::new(kind, "sftp").set_source(error);
        if kind == ErrorKind::Unexpected { failure.set_temporary() } else { failure }
    }

    /// Makes the folder of a path, and the folders above it, if they are missing.
    async fn make_folder(&self, connection: &Arc<Connection>, folder: &str) -> Result<()> {
        let above = folder.match_indices('/').map(|(end, _)| &folder[..end]);
        let folders: Vec<&str> = above.chain([folder]).filter(|path| !path.is_empty()).collect();
        let mut missing = Vec::new();
        let mut fs = connection.sftp.fs();
        for &path in folders.iter().rev() {
            match fs.create_dir(path).await {
                Err(SftpError::SftpError(SftpErrorKind::NoSuchFile, _)) => missing.push(path),
                // The folder exists; any other problem shows at the next request.
                Ok(()) | Err(SftpError::SftpError(..)) => break,
                Err(error) => return Err(self.failed(connection, error)),
            }
        }
        for path in missing.into_iter().rev() {
            match fs.create_dir(path).await {
                Ok(()) | Err(SftpError::SftpError(..)) => {}
                Err(error) => return Err(self.failed(connection, error)),
            }
        }
        Ok(())
    }

    /// Opens a file to write it anew, in a folder that is made if it is missing.
    async fn create(&self, connection: &Arc<Connection>, path: &str) -> Result<File> {
        let path = self.0.folder.at(path);
        match connection.sftp.create(&path).await {
            Err(SftpError::SftpError(SftpErrorKind::NoSuchFile, _)) => {
                let (folder, _) = path.rsplit_once('/').unwrap_or_default();
                self.make_folder(connection, folder).await?;
                let created = connection.sftp.create(&path).await;
                created.map_err(|error| self.failed(connection, error))
            }
            created => created.map_err(|error| self.failed(connection, error)),
        }
    }
}

/// Returns the metadata that the host states for a file.
fn metadata_of(found: &MetaData) -> Metadata {
    let mut metadata = match found.file_type() {
        Some(kind) if kind.is_dir() => MetadataBuilder::dir(),
        Some(kind) if kind.is_file() => MetadataBuilder::file(found.len().unwrap_or_default()),
        _ => MetadataBuilder::unknown(),
    };
    let modified = found.modified().map(|time| Timestamp::try_from(time.as_system_time()));
    modified.into_iter().flatten().for_each(|time| _ = metadata.last_modified(time));
    metadata.build()
}

impl Service for Host {
    type Reader = oio::StreamReader<Reader>;
    type Writer = Writer;
    type Lister = Lister;
    type Deleter = oio::OneShotDeleter<Deleter>;
    type Copier = ();
    type Composer = ();

    fn info(&self) -> ServiceInfo {
        ServiceInfo::new("sftp", &self.0.folder.root, "")
    }

    fn capability(&self) -> Capability {
        Capability {
            stat: true,
            read: true,
            write: true,
            write_can_multi: true,
            create_dir: true,
            delete: true,
            list: true,
            rename: true,
            shared: true,
            ..Capability::default()
        }
    }

    async fn create_dir(
        &self,
        _: &OperationContext,
        path: &str,
        _: OpCreateDir,
    ) -> Result<RpCreateDir> {
        let connection = self.connection().await?;
        let folder = self.0.folder.at(path);
        self.make_folder(&connection, folder.trim_end_matches('/')).await?;
        Ok(RpCreateDir::default())
    }

    async fn stat(&self, _: &OperationContext, path: &str, _: OpStat) -> Result<RpStat> {
        let connection = self.connection().await?;
        let found = connection.sftp.fs().metadata(self.0.folder.at(path)).await;
        let found = found.map_err(|error| self.failed(&connection, error))?;
        Ok(RpStat::new(metadata_of(&found)))
    }

    fn read(&self, _: &OperationContext, path: &str, _: OpRead) -> Result<Self::Reader> {
        Ok(oio::StreamReader::new(Reader { host: self.clone(), path: path.to_owned() }))
    }

    fn write(&self, _: &OperationContext, path: &str, _: OpWrite) -> Result<Writer> {
        Ok(Writer { host: self.clone(), path: path.to_owned(), opened: None })
    }

    fn delete(&self, _: &OperationContext) -> Result<Self::Deleter> {
        Ok(oio::OneShotDeleter::new(Deleter(self.clone())))
    }

    fn list(&self, _: &OperationContext, path: &str, _: OpList) -> Result<Lister> {
        Ok(Lister { host: self.clone(), path: path.to_owned(), opened: None, is_over: false })
    }

    fn copy(&self, _: &OperationContext, _: &str, _: &str, _: OpCopy) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, "sftp copies no files"))
    }

    async fn rename(
        &self,
        _: &OperationContext,
        from: &str,
        to: &str,
        _: OpRename,
    ) -> Result<RpRename> {
        let connection = self.connection().await?;
        let (from, to) = (self.0.folder.at(from), self.0.folder.at(to));
        let mut fs = connection.sftp.fs();
        let mut renamed = fs.rename(&from, &to).await;
        if let Err(SftpError::SftpError(SftpErrorKind::NoSuchFile, _)) = &renamed {
            let (folder, _) = to.rsplit_once('/').unwrap_or_default();
            self.make_folder(&connection, folder).await?;
            renamed = fs.rename(&from, &to).await;
        }
        renamed.map_err(|error| self.failed(&connection, error))?;
        Ok(RpRename::default())
    }

    async fn presign(&self, _: &OperationContext, _: &str, _: OpPresign) -> Result<RpPresign> {
        Err(Error::new(ErrorKind::Unsupported, "sftp has no signed requests"))
    }
}

struct Reader {
    host: Host,
    path: String,
}

impl oio::StreamRead for Reader {
    async fn open(&self, range: BytesRange) -> Result<(RpRead, Box<dyn oio::ReadStreamDyn>)> {
        let connection = self.host.connection().await?;
        let opened = connection.sftp.open(self.host.0.folder.at(&self.path)).await;
        let file = opened.map_err(|error| self.host.failed(&connection, error))?;
        let (next, left) = (range.offset(), range.size().unwrap_or(u64::MAX));
        let stream = ReadStream { host: self.host.clone(), connection, file, next, left };
        Ok((RpRead::default(), Box::new(stream)))
    }
}

struct ReadStream {
    host: Host,
    connection: Arc<Connection>,
    file: File,
    /// The offset of the next byte.
    next: u64,
    /// Number of bytes that are still to be read.
    left: u64,
}

impl oio::ReadStream for ReadStream {
    async fn read(&mut self) -> Result<Buffer> {
        let most = self.left.min(MOST_READ) as u32;
        // The file's position moved by the number of bytes it asked for, which may be more than the
        // bytes that came.
        let at = self.file.seek(SeekFrom::Start(self.next)).await;
        at.map_err(|error| Error::new(ErrorKind::Unexpected, "sftp").set_source(error))?;
        let read = self.file.read(most, BytesMut::new()).await;
        let read = read.map_err(|error| self.host.failed(&self.connection, error))?;
        let bytes = read.unwrap_or_default().freeze();
        self.next += bytes.len() as u64;
        self.left -= (bytes.len() as u64).min(self.left);
        Ok(bytes.into())
    }
}

struct Writer {
    host: Host,
    path: String,
    opened: Option<(Arc<Connection>, Pin<Box<TokioCompatFile>>)>,
}

impl Writer {
    async fn file(&mut self) -> Result<&mut Pin<Box<TokioCompatFile>>> {
        let (_, file) = match self.opened.take() {
            Some(opened) => self.opened.insert(opened),
            None => {
                let connection = self.host.connection().await?;
                let file = self.host.create(&connection, &self.path).await?;
                self.opened.insert((connection, Box::pin(TokioCompatFile::new(file))))
            }
        };
        Ok(file)
    }

    fn failed(&self, error: std::io::Error) -> Error {
        match &self.opened {
            Some((connection, _)) => self.host.failed(connection, error.into()),
            None => Error::new(ErrorKind::Unexpected, "sftp").set_source(error),
        }
    }
}

impl oio::Write for Writer {
    async fn write(&mut self, mut bytes: Buffer) -> Result<()> {
        let mut written = Ok(());
        let file = self.file().await?;
        while bytes.has_remaining() && written.is_ok() {
            written = file.write(bytes.chunk()).await.map(|count| bytes.advance(count));
        }
        written.map_err(|error| self.failed(error))
    }

    async fn close(&mut self) -> Result<Metadata> {
        let closed = self.file().await?.shutdown().await;
        closed.map_err(|error| self.failed(error))?;
        Ok(MetadataBuilder::unknown().build())
    }

    async fn abort(&mut self) -> Result<()> {
        Err(Error::new(
            ErrorKind::Unsupported,
            "what was written of a file stays until it is removed",
        ))
    }
}

/// Lists a folder. Its connection is its own until the end.
struct Lister {
    host: Host,
    path: String,
    opened: Option<(Arc<Connection>, Pin<Box<ReadDir>>)>,
    is_over: bool,
}

impl Lister {
    async fn open(&self) -> Result<Option<(Arc<Connection>, Pin<Box<ReadDir>>)>> {
        let connection = self.host.connection().await?;
        match connection.sftp.fs().open_dir(self.host.0.folder.at(&self.path)).await {
            Ok(folder) => Ok(Some((connection, Box::pin(folder.read_dir())))),
            Err(SftpError::SftpError(SftpErrorKind::NoSuchFile, _)) => Ok(None),
            Err(error) => Err(self.host.failed(&connection, error)),
        }
    }
}

impl oio::List for Lister {
    async fn next(&mut self) -> Result<Option<oio::Entry>> {
        if self.opened.is_none() && !self.is_over {
            self.opened = self.open().await?;
            self.is_over = self.opened.is_none();
        }
        let Some((connection, folder)) = &mut self.opened else { return Ok(None) };
        while let Some(found) = folder.next().await {
            let found = found.map_err(|error| self.host.failed(connection, error))?;
            // A name that is not UTF-8 is foreign.
            let Some(name) = found.filename().to_str() else { continue };
            let metadata = metadata_of(&found.metadata());
            let above = self.path.trim_start_matches('/');
            let path = match name {
                "." | ".." => continue,
                _ if metadata.is_dir() => format!("{above}{name}/"),
                _ => format!("{above}{name}"),
            };
            return Ok(Some(oio::Entry::new(&path, metadata)));
        }
        (self.opened, self.is_over) = (None, true);
        Ok(None)
    }
}

struct Deleter(Host);

impl oio::OneShotDelete for Deleter {
    async fn delete_once(&self, path: String, _: OpDelete) -> Result<()> {
        let connection = self.0.connection().await?;
        let (mut fs, target) = (connection.sftp.fs(), self.0.0.folder.at(&path));
        let deleted = match target.strip_suffix('/') {
            Some(folder) => fs.remove_dir(folder).await,
            None => fs.remove_file(&target).await,
        };
        match deleted {
            Err(SftpError::SftpError(SftpErrorKind::NoSuchFile, _)) => Ok(()),
            deleted => deleted.map_err(|error| self.0.failed(&connection, error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `ssh` started ends with it, such as the process of `ProxyJump`, which would wait for
    /// its host as long as that is silent.
    #[tokio::test]
    async fn no_process_outlives_a_connection() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 600 & echo $!; wait"]).stdout(Stdio::piped());
        shell.process_group(0).kill_on_drop(true);
        let mut ssh = Ssh(shell.spawn().unwrap());
        let mut number = String::new();
        let mut lines = tokio::io::BufReader::new(ssh.0.stdout.take().unwrap());
        tokio::io::AsyncBufReadExt::read_line(&mut lines, &mut number).await.unwrap();
        let state = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", number.trim()));
            stat.ok().and_then(|stat| stat.rsplit(") ").next()?.chars().next())
        };
        assert!(state().is_some_and(|state| state != 'Z'), "{number}");
        drop(ssh);
        for _ in 0..200 {
            if state().is_none_or(|state| state == 'Z') {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the process {number} still runs");
    }

    #[test]
    fn messages_of_ssh_are_told() {
        let closed = || SftpError::IOError(std::io::ErrorKind::UnexpectedEof.into());
        for (said, kind, shown) in [
            ("", ErrorKind::Unexpected, "the host ended the connection before its SFTP server"),
            ("ssh: connect to host h port 22: refused\n", ErrorKind::Unexpected, "ssh: connect to"),
            (
                "Load key \"open\": bad permissions\nme@h: Permission denied (publickey).\n",
                ErrorKind::PermissionDenied,
                "ssh: Load key \"open\": bad permissions; me@h: Permission denied (publickey).",
            ),
            (
                "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nOffending key in known:1\n  \
                 remove with:\n  ssh-keygen -f \"known\" -R \"[h]:23\"\nHost key verification failed.",
                ErrorKind::PermissionDenied,
                "(Offending key in known:1); if the host was set up anew, `ssh-keygen -f \"known\" -R \
                 \"[h]:23\"` forgets",
            ),
        ] {
            let error = refused(said, &closed());
            assert_eq!(error.kind(), kind);
            let why = std::error::Error::source(&error).unwrap().to_string();
            assert!(why.contains(shown), "{why}");
        }
    }
}
