//! Patterns of paths by the rules of gitignore: for paths that are left out, and for files that may
//! be removed.
//!
//! A pattern without a slash, or with a slash only at its end, matches names in any folder; any
//! other pattern matches paths from the root on. `build/` matches only folders. A later `!pattern`
//! includes again what an earlier pattern leaves out, unless a folder above is left out. Beyond
//! these rules, `./cache` is the one in the root, as a shell would have it, and so is an absolute
//! path inside the root. Comments do not exist: `#` is an ordinary character.
//!
//! In catalogues of earlier versions of Paritas, patterns have another meaning: they never match
//! only folders, a leading `./` has no effect, and `!` is an ordinary character.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use paritas_store::error::{Error, Result};

use crate::catalogue::{Settings, expect_few};
use crate::paths::path_in;

/// Characters with a special meaning in a pattern.
const SPECIAL: [char; 8] = ['\\', '*', '?', '[', ']', '{', '}', '!'];

/// Patterns of paths that are left out, or of files that may be removed.
#[derive(Debug)]
pub(crate) struct Excludes {
    all: Gitignore,
    /// Whether the patterns, as they are stored, follow the rules of gitignore.
    gitignore: bool,
    patterns: Vec<ExcludePattern>,
}

#[derive(Debug)]
struct ExcludePattern {
    /// The pattern as it was given.
    given: String,
    /// The pattern as the catalogue keeps it.
    stored: String,
    /// Tells whether it has matched any path, if that is asked for.
    use_of: Option<PatternUse>,
}

/// Whether a pattern has matched any path.
#[derive(Debug)]
struct PatternUse {
    alone: Gitignore,
    is_used: AtomicBool,
}

impl Excludes {
    /// Reads patterns that were given for a root, as the one field in `field`.
    ///
    /// # Errors
    /// If a pattern cannot be read, or if there are more than a catalogue keeps
    /// ([`crate::ErrorKind::Parameters`]).
    pub fn given(root: &Path, patterns: &[String], field: &'static [&'static str]) -> Result<Self> {
        let pairs = patterns.iter().map(|given| (given.clone(), from_root(root, given)));
        let mut excludes = Self::new(pairs, true, field)?;
        expect_few(&excludes.lines()).map_err(|why| refused(&why, field))?;
        for pattern in &mut excludes.patterns {
            let alone = gitignore(&[&pattern.stored]).map_err(|error| refused(&error, field))?;
            pattern.use_of = Some(PatternUse { alone, is_used: AtomicBool::new(false) });
        }
        Ok(excludes)
    }

    /// Reads the patterns of a catalogue.
    ///
    /// # Errors
    /// If a pattern cannot be read ([`crate::ErrorKind::Parameters`]).
    pub fn stored(settings: &Settings) -> Result<Self> {
        let patterns = settings.excludes.iter().map(|stored| (stored.clone(), stored.clone()));
        Self::new(patterns, settings.gitignore, &["excludes"])
    }

    /// Reads patterns, each as it was given and as it is stored.
    fn new(
        patterns: impl Iterator<Item = (String, String)>,
        follows_gitignore: bool,
        field: &'static [&'static str],
    ) -> Result<Self> {
        let pattern = |(given, stored)| ExcludePattern { given, stored, use_of: None };
        let patterns: Vec<ExcludePattern> = patterns.map(pattern).collect();
        let line = |one: &ExcludePattern| match follows_gitignore {
            true => one.stored.clone(),
            false => of_before(&one.stored),
        };
        let lines: Vec<String> = patterns.iter().map(line).collect();
        let all = gitignore(&lines).map_err(|error| refused(&error, field))?;
        Ok(Self { all, gitignore: follows_gitignore, patterns })
    }

    /// Whether a path relative to the root is left out.
    pub fn has(&self, path: &[u8], is_folder: bool) -> bool {
        if self.patterns.is_empty() {
            return false;
        }
        let path = path_in(Path::new(""), path);
        for PatternUse { alone, is_used } in self.patterns.iter().flat_map(|one| &one.use_of) {
            if !is_used.load(Ordering::Relaxed) {
                let is_match = !matches!(alone.matched(&path, is_folder), Match::None);
                is_used.fetch_or(is_match, Ordering::Relaxed);
            }
        }
        self.all.matched(&path, is_folder).is_ignore()
    }

    /// Whether a path relative to the root, or a folder above it, matches.
    pub fn covers(&self, path: &[u8]) -> bool {
        let path = path_in(Path::new(""), path);
        !self.patterns.is_empty() && self.all.matched_path_or_any_parents(path, false).is_ignore()
    }

    /// Returns the patterns as a catalogue keeps them.
    pub fn lines(&self) -> Vec<String> {
        self.patterns.iter().map(|pattern| pattern.stored.clone()).collect()
    }

    /// Whether there are patterns that follow the rules of gitignore as they are stored.
    pub fn follow_gitignore(&self) -> bool {
        self.gitignore && !self.patterns.is_empty()
    }

    /// Returns the patterns, as they were given, that did not match any path that was asked for.
    /// This is not known of the patterns of a catalogue.
    pub fn unmatched(&self) -> Vec<String> {
        let is_unused = |one: &&ExcludePattern| {
            one.use_of.as_ref().is_some_and(|use_of| !use_of.is_used.load(Ordering::Relaxed))
        };
        let unused = self.patterns.iter().filter(is_unused);
        unused.map(|pattern| pattern.given.clone()).collect()
    }
}

/// Reads patterns by the rules of gitignore.
fn gitignore<T: AsRef<str>>(lines: &[T]) -> std::result::Result<Gitignore, ignore::Error> {
    let mut builder = GitignoreBuilder::new("");
    builder.allow_unclosed_class(false);
    for line in lines {
        builder.add_line(None, line.as_ref())?;
    }
    builder.build()
}

/// Returns the error for patterns that cannot be used, which were given as the one field in
/// `field`.
fn refused(why: &dyn std::fmt::Display, field: &'static [&'static str]) -> Error {
    Error::parameters(format!("`{}`: {why}", field.join("`, `"))).naming(field)
}

/// Returns a pattern that does not depend on the place of the root.
fn from_root(root: &Path, given: &str) -> String {
    let (mark, pattern) = match given.strip_prefix('!') {
        Some(rest) => ("!", rest),
        None => ("", given),
    };
    let anchored = match pattern.strip_prefix("./") {
        Some(rest) => Some(format!("/{}", rest.trim_start_matches('/'))),
        None => inside(root, pattern),
    };
    let pattern = match anchored {
        Some(path) => format!("{mark}{path}"),
        // Escaped, because gitignore treats `#` as the beginning of a comment.
        None if pattern.starts_with('#') && mark.is_empty() => format!("\\{pattern}"),
        None => given.to_owned(),
    };
    braces_escaped(&pattern)
}

/// Escapes braces, unless they are escaped already or stand in a class such as `[{}]`. In gitignore
/// they stand for themselves; the library that matches patterns would read alternatives.
fn braces_escaped(pattern: &str) -> String {
    let mut escaped = String::with_capacity(pattern.len());
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => escaped.extend([letter].into_iter().chain(letters.next())),
            '[' => {
                // A bracket at the beginning of a class is one of its letters.
                let rest = letters.as_str();
                let inner = rest.strip_prefix(['!', '^']).unwrap_or(rest);
                let inner = inner.strip_prefix(']').unwrap_or(inner);
                let end = inner.find(']').map_or(rest.len(), |at| rest.len() - inner.len() + at);
                escaped.push('[');
                escaped.push_str(&rest[..end]);
                letters = rest[end..].chars();
            }
            '{' | '}' => escaped.extend(['\\', letter]),
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// Returns the pattern for an absolute path inside the root, which may have patterns of names.
fn inside(root: &Path, pattern: &str) -> Option<String> {
    let path = Path::new(pattern);
    if !path.is_absolute() || root.parent().is_none() {
        return None;
    }
    let end = if pattern.ends_with('/') { "/" } else { "" };
    if let Ok(inner) = path.strip_prefix(root) {
        return Some(blanks_kept(format!("/{}{end}", inner.to_str()?)));
    }
    // A link may lead to it.
    let whole = path.canonicalize().ok()?;
    Some(blanks_kept(format!("/{}{end}", escaped(whole.strip_prefix(root).ok()?.to_str()?))))
}

/// Escapes blanks at the end of a path, which gitignore leaves out of a pattern.
fn blanks_kept(path: String) -> String {
    let name = path.trim_end_matches(' ');
    format!("{name}{}", "\\ ".repeat(path.len() - name.len()))
}

/// Returns the pattern that matches only this path.
fn escaped(path: &str) -> String {
    let letters = path.chars().flat_map(|letter| {
        let mark = SPECIAL.contains(&letter).then_some('\\');
        mark.into_iter().chain([letter])
    });
    letters.collect()
}

/// Returns what a pattern of earlier versions means by the rules of gitignore. One without a slash
/// was for names in any folder, others for paths relative to the root.
fn of_before(pattern: &str) -> String {
    let path = pattern.trim_start_matches("./").trim_end_matches('/');
    match path.contains('/') {
        true => format!("/{}", path.trim_start_matches('/')),
        false if path.starts_with(['!', '#']) => format!("\\{path}"),
        false => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether patterns leave out a path; folders end with a slash.
    fn leaves_out(excludes: &Excludes, path: &str) -> bool {
        excludes.has(path.trim_end_matches('/').as_bytes(), path.ends_with('/'))
    }

    fn given(patterns: &[&str]) -> Excludes {
        let patterns: Vec<String> = patterns.iter().map(|&pattern| pattern.to_owned()).collect();
        Excludes::given(Path::new("/some/root"), &patterns, &["excludes"]).unwrap()
    }

    #[test]
    fn patterns_follow_gitignore() {
        let cases: [(&[&str], &[&str], &[&str]); 16] = [
            (&["cache"], &["cache/", "cache", "a/cache/"], &["caches", "a/b"]),
            (&["./cache"], &["cache/", "cache"], &["a/cache/"]),
            (&["/cache"], &["cache/", "cache"], &["a/cache/"]),
            (&["build/"], &["build/", "a/build/"], &["build", "a/build"]),
            (&["/build/"], &["build/"], &["build", "a/build/"]),
            (&["*.tmp", "!keep.tmp"], &["a.tmp", "a/b.tmp"], &["keep.tmp", "a/keep.tmp"]),
            (&["a/b"], &["a/b", "a/b/"], &["b", "c/a/b"]),
            (&["a/*.jpg"], &["a/1.jpg"], &["a/b/1.jpg", "1.jpg"]),
            (&["a/**/c"], &["a/c", "a/b/c", "a/b/b/c"], &["c", "b/c"]),
            (&["/some/root/cache", "/some/root/x*/"], &["cache", "xy/"], &["a/cache", "xy"]),
            (&["#13101", r"\!a", "[ab]1"], &["#13101", "!a", "a1", "x/b1"], &["13101", "c1"]),
            (&["!./a", "a*", "!./a/"], &["ab", "b/a", "a"], &["a/"]),
            (&["/some/root/x "], &["x ", "x /"], &["x", "x/", "x  "]),
            (&["x{a,b}", "./{y}"], &["x{a,b}", "{y}"], &["xa", "xb", "y", "a/{y}"]),
            (&["[!!]{a,b}"], &["y{a,b}"], &["ya", "yb"]),
            (&["[{}]1", "[]{]2", r"\{"], &["{1", "}1", "{2", "]2", "{"], &["1", "2", r"\{"]),
        ];
        for (patterns, out, kept) in cases {
            let excludes = given(patterns);
            for path in out {
                assert!(leaves_out(&excludes, path), "{patterns:?} keep {path}");
            }
            for path in kept {
                assert!(!leaves_out(&excludes, path), "{patterns:?} leave out {path}");
            }
        }
        let error =
            Excludes::given(Path::new("/"), &["a[b".to_owned()], &["accept_removals"]).unwrap_err();
        assert!(error.to_string().starts_with("`accept_removals`: "), "{error}");
        assert!(error.to_string().contains("a[b"), "{error}");
    }

    /// Each pattern counts by itself, also if a later one matches the same.
    #[test]
    fn unmatched_patterns_are_known() {
        let excludes = given(&["cache", "/cache", "!x", "/some/root/none", "./a", "cache"]);
        for path in ["cache/", "b/x", "b/a"] {
            leaves_out(&excludes, path);
        }
        assert_eq!(excludes.unmatched(), ["/some/root/none", "./a"]);
        assert_eq!(excludes.lines()[3..5], ["/none", "/a"]);
    }

    /// An absolute path is stored relative to the root, which may move, whatever letters it has.
    #[test]
    fn absolute_paths_are_stored_from_the_root() {
        let yard = tempfile::tempdir().unwrap();
        let yard = yard.path().canonicalize().unwrap();
        let (root, inner) = (yard.join("root"), yard.join("root/a [1]"));
        std::fs::create_dir_all(&inner).unwrap();
        let link = yard.join("link");
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&root, &link).unwrap();
            let excludes =
                Excludes::given(&root, &[text(&link.join("a [1]"))], &["excludes"]).unwrap();
            assert!(leaves_out(&excludes, "a [1]/") && !leaves_out(&excludes, "b/a [1]/"));
        }
        let outside = Excludes::given(&root, &[text(&yard.join("a"))], &["excludes"]).unwrap();
        assert_eq!(outside.lines(), [text(&yard.join("a"))]);
    }

    /// Patterns of earlier versions keep their meaning.
    #[test]
    fn old_patterns_mean_what_they_meant() {
        let cases = [
            ("./cache", "a/cache/", true),
            ("build/", "build", true),
            ("/build/", "build", true),
            ("/build/", "a/build", false),
            ("!a", "!a", true),
            ("!a", "a", false),
            ("#a", "x/#a", true),
            ("a/*.jpg", "a/1.jpg", true),
            ("a/*.jpg", "a/b/1.jpg", false),
            ("**/x", "a/b/x", true),
            ("a/**", "a/b/c", true),
            ("a/**", "a/", false),
            ("*.{jpg,tmp}", "b/x.tmp", true),
        ];
        for (pattern, path, expected) in cases {
            let stored = [(pattern.to_owned(), pattern.to_owned())];
            let excludes = Excludes::new(stored.into_iter(), false, &["excludes"]).unwrap();
            assert_eq!(leaves_out(&excludes, path), expected, "{pattern}, {path}");
        }
    }
}
