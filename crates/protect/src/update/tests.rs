use super::*;
use crate::create::{ProtectJob, plan};
use crate::find::find;

/// A protection that an earlier version has made keeps the rules of its patterns, also when all is
/// made anew.
#[test]
fn old_patterns_keep_their_rules() {
    let root = tempfile::tempdir().unwrap();
    for folder in ["cache", "a/cache"] {
        std::fs::create_dir_all(root.path().join(folder)).unwrap();
        std::fs::write(root.path().join(folder).join("file"), folder).unwrap();
    }
    for name in ["build", "other"] {
        std::fs::write(root.path().join(name), name).unwrap();
    }
    let root = root.path().canonicalize().unwrap();
    let excludes = ["./cache", "build/"].map(str::to_owned).to_vec();
    let job = ProtectJob::new(vec![root.clone()]).excludes(excludes.clone()).sync(false);
    assert_eq!(protect(&plan(&job).unwrap(), &|_| {}).unwrap().files, 3);
    let mut found = find(std::slice::from_ref(&root)).unwrap().remove(0);
    assert_eq!(found.excludes(), ["/cache", "build/"]);
    let job = UpdateJob::default().anew(true).sync(false);
    let parity = |found: &Protection| plan_update(found, &job).unwrap().parity.unwrap();
    assert!(parity(&found).order.settings.gitignore && parity(&found).files == 3);
    // As it would be in an old catalogue.
    (found.settings.excludes, found.settings.gitignore) = (excludes.clone(), false);
    let of_before = plan_update(&found, &job).unwrap();
    assert_eq!(of_before.files.gone.len(), 2);
    let settings = &of_before.parity.as_ref().unwrap().order.settings;
    assert!(!settings.gitignore && settings.excludes == excludes);
}
