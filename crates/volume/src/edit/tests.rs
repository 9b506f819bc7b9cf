use super::*;

/// A volume file as somebody might have written it, with two tables behind the nodes.
const FILE: &str = r#"# My volume.
name = "v"
id = "00112233445566778899aabbccddeeff"
code = "2+1"   # small

# What nodes are:
# uri  where it is

# The first one.
[[node]]
name = "a"
uri = "/disks/a"  # ssd

[[node]]
name = "b"
uri = "/disks/b"

# Slow.
[[node]]
name = "c"
uri = "c"
drained = false # not yet

[[node]]
name = "d"
uri = "/disks/d"

[hedge]
most = 5 # percent
# The end.
"#;

struct File {
    folder: tempfile::TempDir,
}

impl File {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("v.toml"), text).unwrap();
        Self { folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("v.toml")
    }

    fn edit(&self) -> Edit {
        Edit::open(&self.path()).unwrap()
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path()).unwrap()
    }
}

fn message(result: Result<impl std::fmt::Debug>, kind: ErrorKind) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    error.to_string()
}

#[test]
fn a_node_is_added_behind_the_others_and_the_number_of_losses_is_kept() {
    let file = File::new(FILE);
    let mut edit = file.edit();
    let node = NodeEntry::new("e", "s3://bucket").with_domain("cloud");
    edit.add(&node).unwrap();
    assert_eq!(edit.config().nodes.len(), 5);
    assert_eq!(file.text(), FILE, "nothing is written yet");
    edit.save().unwrap();
    let expected = FILE.replace("# small\n", "# small\nlosses = 1\n").replace(
        "\n[hedge]",
        "\n[[node]]\nname = \"e\"\nuri = \"s3://bucket\"\ndomain = \"cloud\"\n\n[hedge]",
    );
    assert_eq!(file.text(), expected);
    // A number of losses that cannot be reached yet would be reached with one more node.
    let two = FILE.replace("code = \"2+1\"   # small", "code = \"3+3\"\nlosses = 3 # at most");
    let file = File::new(&two);
    let mut edit = file.edit();
    edit.add(&node).unwrap();
    assert_eq!(edit.config().losses, Some(1));
    assert!(edit.document.to_string().contains("losses = 1 # at most"));
}

#[test]
fn a_node_that_is_there_is_not_added() {
    let file = File::new(FILE);
    let add = |name: &str, uri: &str| file.edit().add(&NodeEntry::new(name, uri));
    assert!(message(add("c", "/x"), ErrorKind::Exists).contains("of this name already: c"));
    let of_c = file.folder.path().canonicalize().unwrap().join("c");
    let place = add("x", of_c.to_str().unwrap());
    assert!(message(place, ErrorKind::Exists).contains("at this place already: c"));
    message(add("x y", "/x"), ErrorKind::Parameters);
    message(add("x", "gopher://x"), ErrorKind::Parameters);
    let inline = "name = \"v\"\nid = \"00112233445566778899aabbccddeeff\"\ncode = \"1+1\"\n\
                  node = [{ name = \"a\", uri = \"/a\" }]\n";
    let file = File::new(inline);
    let refused = file.edit().add(&NodeEntry::new("b", "/b"));
    assert!(message(refused, ErrorKind::Parameters).contains("[[node]]"));
}

#[test]
fn a_node_is_drained_and_then_removed_with_the_comment_above_it() {
    let file = File::new(FILE);
    let mut edit = file.edit();
    assert!(message(file.edit().remove("c"), ErrorKind::Parameters).contains("drained first"));
    assert!(edit.drain("c").unwrap() && !edit.drain("c").unwrap());
    edit.save().unwrap();
    assert_eq!(file.text(), FILE.replace("drained = false #", "drained = true #"));
    let mut edit = file.edit();
    edit.remove("c").unwrap();
    edit.save().unwrap();
    let of_c = "\n# Slow.\n[[node]]\nname = \"c\"\nuri = \"c\"\ndrained = false # not yet\n";
    assert_eq!(file.text(), FILE.replace(of_c, ""));
    // What explains all nodes stays when the first one goes.
    let file = File::new(&FILE.replace("# ssd", "# ssd\ndrained = true"));
    let mut edit = file.edit();
    edit.remove("a").unwrap();
    let of_a = "\n# The first one.\n[[node]]\nname = \"a\"\nuri = \"/disks/a\"  # ssd\n";
    assert_eq!(edit.document.to_string(), FILE.replace(of_a, ""));
}

#[test]
fn a_node_that_the_others_cannot_do_without_is_not_drained() {
    let file = File::new(FILE);
    let mut edit = file.edit();
    edit.drain("a").unwrap();
    let refused = message(edit.drain("b"), ErrorKind::Parameters);
    let numbers = "2 nodes would have to hold 3 shards of each object, up to 2 on one, and 0 \
                   nodes instead of 1 could be lost";
    assert!(refused.contains(numbers), "{refused}");
    assert!(message(edit.drain("x"), ErrorKind::Parameters).contains("it has a, b, c, d"));
    // If some nodes hold several shards already, one node fewer does not lower the tolerance.
    let file = File::new(&FILE.replace("code = \"2+1\"", "code = \"4+2\""));
    file.edit().drain("a").unwrap();
}

#[test]
fn the_mode_and_the_changes_of_others_stay() {
    let file = File::new(FILE);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o604)).unwrap();
        let link = file.folder.path().join("link.toml");
        std::os::unix::fs::symlink("v.toml", &link).unwrap();
        let mut edit = Edit::open(&link).unwrap();
        edit.drain("a").unwrap();
        edit.save().unwrap();
        assert!(link.is_symlink() && file.text().contains("drained = true"));
        assert_eq!(fs::metadata(file.path()).unwrap().permissions().mode() & 0o7777, 0o604);
    }
    let mut edit = file.edit();
    edit.drain("b").unwrap_err();
    edit.add(&NodeEntry::new("e", "/disks/e")).unwrap();
    fs::write(file.path(), FILE).unwrap();
    message(edit.save(), ErrorKind::Busy);
    assert_eq!(file.text(), FILE);
}

#[cfg(unix)]
#[test]
fn folders_are_relative_to_the_link_that_was_given() {
    let file = File::new(FILE);
    let links = tempfile::tempdir().unwrap();
    let link = links.path().join("v.toml");
    std::os::unix::fs::symlink(file.path(), &link).unwrap();
    let mut edit = Edit::open(&link).unwrap();
    assert_eq!(edit.base(), links.path());
    assert!(edit.drain("a").unwrap());
    edit.save().unwrap();
    assert!(link.is_symlink());
}

#[test]
fn of_two_changes_at_once_one_is_refused() {
    for _ in 0..50 {
        let file = File::new(FILE);
        let edits = ["e", "f", "g", "h"].map(|name| {
            let mut edit = file.edit();
            edit.add(&NodeEntry::new(name, format!("/disks/{name}"))).unwrap();
            edit
        });
        let start = std::sync::Barrier::new(edits.len());
        let saved = std::thread::scope(|scope| {
            let save = |edit: Edit| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    edit.save()
                })
            };
            edits.map(save).map(|saving| saving.join().unwrap())
        });
        let done = saved.iter().filter(|saved| saved.is_ok()).count();
        assert_eq!(done, 1, "{saved:?}");
    }
}

#[test]
fn nodes_are_not_inside_each_other() {
    let file = File::new(FILE);
    fs::create_dir_all(file.folder.path().join("one/below")).unwrap();
    let mut edit = file.edit();
    edit.add(&NodeEntry::new("e", "one")).unwrap();
    message(edit.add(&NodeEntry::new("f", "one/below")), ErrorKind::Exists);
    message(edit.add(&NodeEntry::new("f", "")), ErrorKind::Parameters);
}

/// What a program on Windows wrote stays so: the mark of the order of bytes, and the line ends.
#[test]
fn line_ends_stay() {
    let file = File::new(&format!("\u{feff}{}", FILE.replace('\n', "\r\n")));
    let mut edit = file.edit();
    edit.drain("a").unwrap();
    edit.save().unwrap();
    let text = file.text();
    assert!(text.starts_with("\u{feff}# My volume.\r\n"), "{text:?}");
    assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
    let drained = FILE.replacen("# ssd\n", "# ssd\ndrained = true\n", 1);
    assert_eq!(text[3..].replace("\r\n", "\n"), drained);
}
