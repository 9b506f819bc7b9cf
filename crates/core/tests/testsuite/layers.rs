//! Checks the structure of the sources, read from the files themselves. In the core, data flows one
//! way, `unsafe` stays where bytes are touched, and nothing is asked of the system. In all crates
//! ([`CRATES`]), no two files import each other, directly or indirectly, and none imports through
//! the crate's root, which has all others below it. Imports are the paths that begin with `crate::`
//! or `super::`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The layers, lowest first: each may use only itself and those before it. Files outside these
/// folders are named with their path, without `.rs`.
const LAYERS: [&[&str]; 5] =
    [&["error", "limits"], &["define"], &["plan"], &["run"], &["codec", "long", "lt"]];

/// The crates, by their folders.
const CRATES: [&str; 15] = [
    "capi",
    "cli",
    "core",
    "dropins/common",
    "dropins/isal",
    "dropins/jerasure",
    "gateway",
    "protect",
    "reference",
    "report",
    "shards",
    "store",
    "tune",
    "volume",
    "wasm",
];

/// The sources of the core.
fn root() -> PathBuf {
    root_of("core")
}

/// The sources of the crate in a folder of `crates`.
fn root_of(folder: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name(folder).join("src");
    assert!(root.join("lib.rs").is_file() || root.join("main.rs").is_file(), "no crate: {folder}");
    root
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let files = files.into_iter().filter(|path| path.extension().is_some_and(|e| e == "rs"));
    files.chain(folders.iter().flat_map(|folder| sources(folder))).collect()
}

/// Whether a file holds only tests.
fn is_test(path: &Path) -> bool {
    let name = path.file_stem().unwrap();
    let in_tests = ["tests", "decoded", "programs"].iter().any(|tests| name == *tests);
    in_tests && path.starts_with(root().join("run"))
}

/// Returns the code of a file without its comments and unit tests.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// Returns the path of the module that a file below `root` holds, as `plan::optimise::rows`; empty
/// for the crate's root.
fn module(root: &Path, path: &Path) -> String {
    let relative = path.strip_prefix(root).unwrap().with_extension("");
    let parts = relative.iter().map(|part| part.to_str().unwrap().to_owned());
    let parts: Vec<String> =
        parts.filter(|part| !["mod", "lib", "main"].contains(&&**part)).collect();
    parts.join("::")
}

/// Returns the files below `root` by module.
fn files(root: &Path) -> BTreeMap<String, PathBuf> {
    let files = sources(root).into_iter().filter(|path| !is_test(path));
    files.map(|path| (module(root, &path), path)).collect()
}

/// Returns the modules that the code of `module` names by `crate::…` or `super::…`, as deep as
/// there are files for them.
fn imports(code: &str, module: &str, files: &BTreeMap<String, PathBuf>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        collect("", &code[at + "crate::".len()..], files, &mut found);
    }
    let above = |module: &str| module.rsplit_once("::").map_or("", |(above, _)| above).to_owned();
    for (at, _) in code.match_indices("super::").filter(|(at, _)| !code[..*at].ends_with("::")) {
        let (mut place, mut rest) = (above(module), &code[at + "super::".len()..]);
        while let Some(further) = rest.strip_prefix("super::") {
            (place, rest) = (above(&place), further);
        }
        // Modules in a file, such as those of tests, take all that the file has.
        if rest.starts_with('*') {
            continue;
        }
        collect(&place, rest, files, &mut found);
    }
    found
}

/// Reads one path, or a list of paths in braces, after the module `prefix`. Returns the text that
/// follows.
fn collect<'c>(
    prefix: &str,
    code: &'c str,
    files: &BTreeMap<String, PathBuf>,
    found: &mut BTreeSet<String>,
) -> &'c str {
    let code = code.trim_start();
    if let Some(mut list) = code.strip_prefix('{') {
        loop {
            list = collect(prefix, list, files, found).trim_start();
            match list.strip_prefix(',') {
                Some(rest) if !rest.trim_start().starts_with('}') => list = rest,
                Some(rest) => return rest.trim_start().strip_prefix('}').unwrap_or(rest),
                None => return list.strip_prefix('}').unwrap_or(list),
            }
        }
    }
    let end = code.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(code.len());
    let (name, rest) = code.split_at(end);
    let deeper = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}::{name}") };
    if !files.contains_key(&deeper) {
        if !prefix.is_empty() {
            found.insert(prefix.to_owned());
        }
        // The rest of the path names items of that module.
        let mut rest = rest;
        while let Some(item) = rest.strip_prefix("::") {
            if item.starts_with('{') {
                return &item[item.find('}').map_or(item.len(), |end| end + 1)..];
            }
            let end = item.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(item.len());
            rest = &item[end..];
        }
        return rest;
    }
    match rest.strip_prefix("::") {
        Some(rest) => collect(&deeper, rest, files, found),
        None => {
            found.insert(deeper);
            rest
        }
    }
}

/// Returns the modules below `root`, each with those that it imports.
fn graph(root: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let files = files(root);
    let of = |(module, path): (&String, &PathBuf)| {
        let mut imports = imports(&code(path), module, &files);
        imports.remove(module);
        (module.clone(), imports)
    };
    files.iter().map(of).collect()
}

fn layer(module: &str) -> usize {
    let first = module.split("::").next().unwrap();
    LAYERS
        .iter()
        .position(|layer| layer.contains(&first))
        .unwrap_or_else(|| panic!("{module} belongs to no layer"))
}

#[test]
fn data_flows_one_way() {
    for (module, imports) in graph(&root()).iter().filter(|(module, _)| !module.is_empty()) {
        for import in imports {
            assert!(layer(import) <= layer(module), "{module} imports {import}");
        }
    }
}

#[test]
fn no_files_import_each_other() {
    let of_crate = |folder| (folder, circles(&graph(&root_of(folder))));
    let mut found: BTreeMap<_, _> = CRATES.into_iter().map(of_crate).collect();
    found.retain(|_, circles| !circles.is_empty());
    assert!(found.is_empty(), "circles by crate: {found:#?}");
}

#[test]
fn nothing_is_imported_through_the_root() {
    let mut found = Vec::new();
    for folder in CRATES {
        for (module, path) in files(&root_of(folder)) {
            let code = code(&path);
            let names = code.match_indices("crate::").map(|(at, _)| &code[at + "crate::".len()..]);
            let is_item = |name: &&str| name.starts_with(char::is_uppercase) || is_list(name);
            found.extend(names.filter(is_item).map(|_| format!("{folder}: {module}")));
        }
    }
    assert!(found.is_empty(), "these import what the root re-exports: {found:#?}");
}

/// Whether a path goes on with a list that has a name of an item.
fn is_list(code: &str) -> bool {
    let Some(list) = code.strip_prefix('{') else { return false };
    let list = &list[..list.find('}').unwrap_or(list.len())];
    list.split(',').any(|name| name.trim().starts_with(char::is_uppercase))
}

/// Returns the sets of modules that reach each other.
fn circles(graph: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<Vec<String>> {
    let reach = |from: &String| {
        let (mut seen, mut stack) = (BTreeSet::new(), vec![from]);
        while let Some(module) = stack.pop() {
            for import in &graph[module] {
                if seen.insert(import) {
                    stack.push(import);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        graph.keys().map(|module| (module, reach(module))).collect();
    let in_circle = |module: &&String| reached[*module].contains(*module);
    graph
        .keys()
        .filter(in_circle)
        .map(|module| {
            let others = reached[module].iter().copied();
            others.filter(|other| reached[other].contains(module)).cloned().collect()
        })
        .collect()
}

#[test]
fn unsafe_stays_where_bytes_are_touched() {
    for (module, path) in files(&root()).iter().filter(|(module, _)| layer_of_code(module) != 3) {
        assert!(!code(path).contains("unsafe"), "{module} contains `unsafe`");
    }
}

/// Returns the layer of a module. The root, which only names the others, counts as the last layer.
fn layer_of_code(module: &str) -> usize {
    if module.is_empty() { LAYERS.len() } else { layer(module) }
}

/// A codec's settings are passed to it: the core asks neither files nor the environment.
#[test]
fn nothing_is_asked_of_the_system() {
    for (module, path) in files(&root()) {
        for word in ["std::fs", "std::net", "env::var", "env::home", "dirs::"] {
            assert!(!code(&path).contains(word), "{module} contains `{word}`");
        }
    }
}

#[test]
fn imports_are_read() {
    let files = files(&root());
    let read = |code: &str| imports(code, "", &files).into_iter().collect::<Vec<_>>();
    assert_eq!(read("use crate::plan::schedule::{Op, Schedule};"), ["plan::schedule"]);
    assert_eq!(
        read("use crate::plan::optimise::{direct, fuse::fuse};\nuse crate::limits::PAGE;"),
        ["limits", "plan::optimise::direct", "plan::optimise::fuse"]
    );
    assert_eq!(read("let x = crate::error::Error::new();"), ["error"]);
    let above = imports(
        "use super::fuse::fuse;\nuse super::super::prove;\nuse super::*;",
        "plan::optimise::direct",
        &files,
    );
    assert_eq!(above.into_iter().collect::<Vec<_>>(), ["plan::optimise::fuse", "plan::prove"]);
}

/// Public types of the same name in several crates, and why.
const SAME_NAMES: [(&str, &str); 5] = [
    ("Error", "the core's and the estimator's, as in the standard library; all others share one"),
    ("Result", "as `Error`"),
    ("RepairJob", "the same job over shards and over protected files; no program uses both"),
    ("RepairReport", "as `RepairJob`"),
    ("VerifyReport", "as `RepairJob`"),
];

/// A name has one meaning in all public interfaces, as `scripts/api` lists them.
#[test]
fn public_names_have_one_meaning() {
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for folder in ["core", "shards", "tune", "protect", "volume"] {
        let list = root_of(folder).with_file_name("api.txt");
        for line in std::fs::read_to_string(list).unwrap().lines() {
            let line = line.strip_prefix("#[non_exhaustive] ").unwrap_or(line);
            let kinds = ["pub struct ", "pub enum ", "pub trait ", "pub type "];
            let Some(path) = kinds.iter().find_map(|kind| line.strip_prefix(kind)) else {
                continue;
            };
            let path = path.split(['<', '(', ' ']).next().unwrap();
            let (place, name) = path.rsplit_once("::").unwrap();
            // What belongs to a trait is named with its type: `Codec::Err`.
            let is_associated = place.rsplit("::").next().unwrap().starts_with(char::is_uppercase);
            if !is_associated {
                let owner = place.split("::").next().unwrap();
                places.entry(name.to_owned()).or_default().insert(owner.to_owned());
            }
        }
    }
    places.retain(|_, places| places.len() > 1);
    let found: Vec<&str> = places.keys().map(String::as_str).collect();
    let mut allowed: Vec<&str> = SAME_NAMES.iter().map(|(name, _)| *name).collect();
    allowed.sort_unstable();
    assert_eq!(found, allowed, "each has several meanings: {places:#?}");
}
