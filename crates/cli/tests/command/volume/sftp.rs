//! A volume over folders of a host with an SSH server. It needs `sshd`, which CI has.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use walkdir::WalkDir;

use crate::common::{Chance, exit, finish, not_run, paritas, run};

/// An SSH server that runs as this user, and a key for it.
struct Server {
    folder: TempDir,
    port: u16,
    sshd: Child,
}

impl Server {
    /// Starts the server. If there is no `sshd`, says so and returns `None`.
    fn start() -> Option<Self> {
        let sshd =
            ["/usr/sbin/sshd", "/usr/bin/sshd"].into_iter().find(|it| Path::new(it).exists());
        let Some(sshd) = sshd else {
            not_run("there is no sshd; install openssh-server");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        for key in ["host", "user"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f", &at(key)])
                .status();
            assert!(made.unwrap().success());
        }
        // `sshd` needs this folder; the system's own service makes it when it starts.
        let _ = fs::create_dir("/run/sshd");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nPidFile none\n\
             AuthorizedKeysFile {}\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
             UsePAM no\nStrictModes no\nPermitRootLogin prohibit-password\nMaxStartups 100\n\
             Subsystem sftp internal-sftp\n",
            at("host"),
            at("user.pub")
        );
        fs::write(at("sshd.conf"), config).unwrap();
        let log = fs::File::create(at("log")).unwrap();
        let sshd =
            Command::new(sshd).args(["-D", "-e", "-f", &at("sshd.conf")]).stderr(log).spawn();
        let server = Self { folder, port, sshd: sshd.unwrap() };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let log = || fs::read_to_string(server.folder.path().join("log"));
            assert!(begun.elapsed() < Duration::from_secs(20), "sshd: {:?}", log());
            thread::sleep(Duration::from_millis(20));
        }
        Some(server)
    }

    /// Returns the arguments that make a volume over three folders of the server.
    fn init(&self, volume: &Path) -> Vec<OsString> {
        let user = Command::new("id").arg("-un").output().unwrap().stdout;
        let user = String::from_utf8(user).unwrap();
        let mut init = args!["volume", "init", volume, "--code", "2+1"].to_vec();
        for node in ["a", "b", "c"] {
            let place = self.folder.path().join(node);
            let uri = format!(
                "{node}=sftp://{}@127.0.0.1:{}{}?known_hosts=accept",
                user.trim(),
                self.port,
                place.display()
            );
            let key = format!("{node}={}", self.folder.path().join("user").display());
            init.extend(args!["--node", uri, "--credentials", key]);
        }
        init
    }

    /// Returns the command lines of the programs that are connected to the server.
    fn clients(&self) -> Vec<String> {
        let host = format!("-p {} -s -- 127.0.0.1 ", self.port);
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let commands = processes.filter_map(|it| fs::read(it.path().join("cmdline")).ok());
        let commands = commands.map(|it| String::from_utf8_lossy(&it).replace('\0', " "));
        commands.filter(|it| it.contains(&host) && it.contains("ssh")).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
    }
}

#[test]
fn a_killed_command_leaves_no_connection_and_no_file_on_this_machine() {
    let Some(server) = Server::start() else { return };
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (volume, state) = (place.path().join("tank.toml"), place.path().join("state"));
    fs::create_dir(&state).unwrap();
    run(server.init(&volume)).expect(exit::DONE);
    let (file, content) = (place.path().join("file"), Chance(1).bytes(300_000));
    fs::write(&file, &content).unwrap();
    run(args!["volume", "put", &volume, &file, "a/файл"]).expect(exit::DONE);
    let files = |folder: &Path| {
        let found = WalkDir::new(folder).into_iter().flatten();
        let found = found.filter(|it| it.file_type().is_file());
        found.map(|it| it.into_path().to_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let unfinished = || {
        let files = files(server.folder.path());
        files.iter().filter(|path| path.contains(".paritas-new/")).count()
    };
    for _ in 0..3 {
        let before = unfinished();
        let mut put = paritas(args!["volume", "put", &volume, "-", "other"]);
        put.env("XDG_STATE_HOME", &state).stdin(Stdio::piped());
        let mut put = put.spawn().unwrap();
        put.stdin.as_mut().unwrap().write_all(&content.repeat(9)).unwrap();
        let begun = Instant::now();
        while unfinished() <= before {
            assert!(begun.elapsed() < Duration::from_secs(20), "nothing is written");
            thread::sleep(Duration::from_millis(5));
        }
        assert!(!server.clients().is_empty());
        put.kill().unwrap();
        put.wait().unwrap();
    }
    let begun = Instant::now();
    while !server.clients().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", server.clients());
        thread::sleep(Duration::from_millis(20));
    }
    assert!(files(&state).iter().all(|path| path.contains("/paritas/unfinished/")), "{state:?}");
    assert!(unfinished() >= 3);
    let mut repair = paritas(args!["volume", "repair", &volume]);
    repair.env("XDG_STATE_HOME", &state);
    finish(repair).expect(exit::DONE);
    assert_eq!((unfinished(), files(&state)), (0, Vec::new()));
    let got = run(args!["volume", "get", &volume, "a/файл", "-"]).expect(exit::DONE);
    assert!(got.stdout == content);
    a_refused_login_is_not_repeated(&server, &volume);
    let wrong = fs::read_to_string(&volume).unwrap().replace("known_hosts=accept", "");
    fs::write(&volume, wrong.replace("127.0.0.1", "no-such-host.invalid")).unwrap();
    let refused = run(args!["volume", "ls", &volume]).expect(exit::IO);
    assert!(refused.stderr.contains("no-such-host.invalid"), "{refused}");
}

/// One node has a key that the server does not know.
fn a_refused_login_is_not_repeated(server: &Server, volume: &Path) {
    let put = |object: String| run(args!["volume", "put", volume, volume, object]);
    (0..20).for_each(|object| drop(put(format!("many/{object}")).expect(exit::DONE)));
    let with_key = |key: &str| {
        let text = fs::read_to_string(volume).unwrap();
        let (others, last) = text.rsplit_once("name = \"c\"").unwrap();
        let last = last.replace("/user\"", key);
        fs::write(volume.with_file_name("refused.toml"), format!("{others}name = \"c\"{last}"))
            .unwrap();
    };
    with_key("/host\"");
    let refusals = || {
        let log = fs::read_to_string(server.folder.path().join("log")).unwrap();
        log.matches("[preauth]").count()
    };
    let before = refusals();
    let repair = run(args!["volume", "repair", volume.with_file_name("refused.toml")]);
    let repair = repair.expect(exit::REPAIRABLE);
    assert!(repair.text().contains("Permission denied"), "{repair}");
    assert!(repair.stderr.contains("give this user access to c,"), "{repair}");
    let logins = refusals() - before;
    assert!((1..=8).contains(&logins), "{logins} logins");
}
