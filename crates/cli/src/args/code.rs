//! The name of a code on the command line: a spec, or `matrix:FILE`, which stands for the spec of
//! the matrix in a file.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;

use clap::builder::{OsStringValueParser, TypedValueParser};
use paritas::Spec;
use paritas::code::ParityMatrix;
use paritas_shards::shown;
use paritas_store::place::system::{name_bytes, name_of};

/// Largest size of a matrix file, in bytes. A matrix has at most about 250,000 digits.
const MAX_BYTES: u64 = 1 << 20;

/// Returns the parser of a code's name. A name that begins with `matrix:` is a spec if the rest
/// reads KEY=VALUE,…, and otherwise the path of a file.
pub fn code_name() -> impl TypedValueParser<Value = Spec> {
    OsStringValueParser::new().try_map(|text: OsString| spec(&text))
}

fn spec(text: &OsStr) -> Result<Spec, String> {
    let path = name_bytes(text).strip_prefix(b"matrix:").map(name_of);
    match (text.to_str().map(str::parse::<Spec>), path) {
        (Some(Ok(spec)), _) => Ok(spec),
        (_, Some(path)) => read(path).map_err(|message| format!("{}: {message}", shown(path))),
        (Some(Err(error)), None) => Err(error.to_string()),
        (None, None) => Err("a code's name must be UTF-8".to_owned()),
    }
}

/// Reads the matrix in a file, and returns its spec.
fn read(path: &OsStr) -> Result<Spec, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let mut limited = file.take(MAX_BYTES + 1);
    limited.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("a matrix file must have at most {MAX_BYTES} bytes"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|&&byte| byte == b'\n').count();
        format!("line {line}: a matrix file must be a text in UTF-8")
    })?;
    let matrix: ParityMatrix = text.parse().map_err(|error: paritas::Error| error.to_string())?;
    Ok(matrix.spec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_specs_or_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("k=2,m=2");
        std::fs::write(&file, "k = 2\nm = 2\nw = 1\n11\n11\n").unwrap();
        let of = |path: &OsStr| {
            let mut text = OsString::from("matrix:");
            text.push(path);
            spec(&text)
        };
        let toy = "matrix:k=2,m=2,w=1,rows=c.c";
        assert_eq!(of(file.as_os_str()).unwrap().to_string(), toy);
        assert_eq!(spec(OsStr::new(toy)).unwrap().to_string(), toy);
        assert_eq!(spec(OsStr::new("4+2")).unwrap().to_string(), "cauchy:k=4,m=2");
        // A text that parses as a spec is never taken for a file; a path with a folder never parses
        // as one.
        assert_eq!(of(OsStr::new("k=2,m=2")).unwrap().text("k"), Some("2"));
        for (content, part) in [
            (&b"k = 2\nm = 2\nw = 1\n11\n12\n"[..], "line 5: digit 2 of a row must be 0 or 1"),
            (b"k = 2\n# \xff\n", "line 2: a matrix file must be a text in UTF-8"),
            (&[b'#'; 1 + (1 << 20)], "at most 1048576 bytes"),
        ] {
            std::fs::write(&file, content).unwrap();
            let error = of(file.as_os_str()).unwrap_err();
            assert!(error.contains(part) && error.contains("k=2,m=2: "), "{error}");
        }
        let nowhere = of(folder.path().join("nowhere").as_os_str()).unwrap_err();
        assert!(nowhere.contains("nowhere: No such file"), "{nowhere}");
        assert!(spec(OsStr::new("nothing:x")).is_err());
    }
}
