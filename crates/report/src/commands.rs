//! The lines that each command prints.

/// A command, and the types of the lines that it prints.
#[derive(Debug, Clone, Copy)]
pub struct CommandLines {
    /// The command without the name of the program, or `any`.
    pub command: &'static str,
    /// The types of its lines.
    pub types: &'static [&'static str],
}

impl CommandLines {
    /// Whether the command belongs to `volume`, which some builds lack.
    pub fn is_of_volumes(&self) -> bool {
        self.command.starts_with("volume ")
    }

    /// Whether the command is the gateway, which some builds lack.
    pub fn is_gateway(&self) -> bool {
        self.command == "serve"
    }
}

const fn prints(command: &'static str, types: &'static [&'static str]) -> CommandLines {
    CommandLines { command, types }
}

/// The commands, after the lines that any of them may print.
pub static COMMANDS: [CommandLines; 32] = [
    prints("any", &["progress", "warning", "error"]),
    prints("protect", &["protect"]),
    prints("encode", &["encode"]),
    prints("decode", &["decode"]),
    prints("verify", &["verify", "summary", "unrecognised", "protect-verify"]),
    prints("repair", &["repair", "summary", "clean", "unrecognised", "protect-repair"]),
    prints("promote", &["promote"]),
    prints("info", &["info", "protect-info"]),
    prints("import", &["import"]),
    prints("export", &["export"]),
    prints("codes", &["family", "code"]),
    prints("schedule", &["schedule"]),
    prints("bench", &["bench", "comparison"]),
    prints("tune", &["decision", "tuning"]),
    prints("doctor", &["doctor"]),
    prints("volume init", &["volume-init"]),
    prints("volume put", &["volume-put"]),
    prints("volume get", &["volume-get"]),
    prints("volume cat", &["volume-cat"]),
    prints("volume ls", &["volume-ls"]),
    prints("volume stat", &["volume-stat"]),
    prints("volume rm", &["volume-rm"]),
    prints("volume verify", &["volume-verify", "summary"]),
    prints("volume repair", &["volume-repair", "volume-collect", "summary"]),
    prints("volume promote", &["volume-promote"]),
    prints("volume reencode", &["volume-reencode"]),
    prints("volume add", &["volume-add"]),
    prints("volume drain", &["volume-drain", "volume-repair", "volume-collect", "summary"]),
    prints("volume replace", &["volume-replace", "volume-repair", "volume-collect", "summary"]),
    prints("volume status", &["volume-status"]),
    prints("volume bench", &["volume-bench"]),
    prints("serve", &["serve"]),
];
