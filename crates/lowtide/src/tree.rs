// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--size-of`: how much the files under some paths hold.

use std::{
    collections::HashSet,
    fs::Metadata,
    io::ErrorKind,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use walkdir::WalkDir;

/// What the files under some paths hold together, as far as they could be read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// The files' data; holes are none.
    pub bytes: u64,
    /// What could not be read: how much, and the first of it with the reason.
    unread: usize,
    first_unread: Option<String>,
}

impl Tree {
    /// Walks the paths, with `one_file_system` only on the file system of each. Symbolic links below them are not
    /// followed, and what is reached twice counts once, as in backup programs; what vanishes during the walk does not
    /// count.
    ///
    /// # Errors
    /// One sentence: a path that does not exist.
    pub fn of(paths: &[PathBuf], one_file_system: bool) -> Result<Tree> {
        let mut tree = Tree::default();
        let mut roots = Vec::new();
        for path in paths {
            match path.canonicalize() {
                Ok(root) => roots.push(root),
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                    return Err(error).with_context(|| format!("--size-of {}", path.display()));
                }
                Err(error) => tree.miss(format!("{}: {error}", path.display())),
            }
        }
        // files come first, so that directories find them counted: only those that can be met again are remembered
        roots.sort_by_key(|root| root.is_dir());
        let mut seen = HashSet::new();
        for root in roots {
            tree.walk(&root, one_file_system, &mut seen);
        }
        Ok(tree)
    }

    fn walk(&mut self, root: &Path, one_file_system: bool, seen: &mut HashSet<(u64, u64)>) {
        let mut entries = WalkDir::new(root).same_file_system(one_file_system).into_iter();
        while let Some(entry) = entries.next() {
            match entry.and_then(|entry| Ok((entry.metadata()?, entry.depth()))) {
                Ok((directory, _)) if directory.is_dir() => {
                    if !seen.insert(identity(&directory)) {
                        entries.skip_current_dir();
                    }
                }
                Ok((file, depth)) if file.is_file() => {
                    let again = depth == 0 || file.nlink() > 1;
                    let new = if again { seen.insert(identity(&file)) } else { !seen.contains(&identity(&file)) };
                    self.bytes += if new { data(&file) } else { 0 };
                }
                Ok(_) => {}
                Err(error) if error.io_error().is_some_and(|error| error.kind() == ErrorKind::NotFound) => {}
                Err(error) => self.miss(match (error.path(), error.io_error()) {
                    (Some(path), Some(why)) => format!("{}: {why}", path.display()),
                    _ => error.to_string(),
                }),
            }
        }
    }

    fn miss(&mut self, what: String) {
        self.unread += 1;
        self.first_unread.get_or_insert(what);
    }

    /// What a person should know of the estimate.
    fn warnings(&self) -> Vec<String> {
        let unread = self.first_unread.as_ref().map(|first| match self.unread {
            1 => format!("--size-of: 1 place could not be read and is not counted: {first}"),
            number => format!("--size-of: {number} places could not be read and are not counted, the first: {first}"),
        });
        let empty = "--size-of: there are no bytes, so nothing to announce; PROGRAM runs in the background, and no \
                     deadline presses";
        unread.into_iter().chain((self.bytes == 0).then(|| empty.to_owned())).collect()
    }
}

/// What to announce for the files under `paths`, with warnings on stderr; nothing for an empty tree.
///
/// # Errors
/// As for [`Tree::of`].
pub fn announced(paths: &[PathBuf], one_file_system: bool) -> Result<Option<u64>> {
    let tree = Tree::of(paths, one_file_system)?;
    for warning in tree.warnings() {
        eprintln!("lowtide: {warning}");
    }
    Ok(Some(tree.bytes).filter(|bytes| *bytes > 0))
}

fn identity(of: &Metadata) -> (u64, u64) {
    (of.dev(), of.ino())
}

/// The bytes of a file that are not a hole.
fn data(file: &Metadata) -> u64 {
    file.len().min(file.blocks() * 512)
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File},
        io::Write,
        os::unix::fs::{PermissionsExt, symlink},
        thread,
    };

    use nix::unistd::{self, Uid};

    use super::*;

    /// 1234 bytes: a, link to it, sub/b, sub/hard which is a again.
    fn tree() -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir(tree.path().join("sub")).unwrap();
        fs::write(tree.path().join("a"), [0; 1000]).unwrap();
        fs::write(tree.path().join("sub/b"), [0; 234]).unwrap();
        symlink("a", tree.path().join("link")).unwrap();
        fs::hard_link(tree.path().join("a"), tree.path().join("sub/hard")).unwrap();
        tree
    }

    #[test]
    fn what_is_reached_twice_counts_once() {
        let tree = tree();
        symlink(tree.path().join("sub"), tree.path().join("to_sub")).unwrap();
        for (paths, bytes) in [
            (vec![""], 1234),
            (vec!["", ""], 1234),
            (vec!["", "sub"], 1234),
            (vec!["sub", ""], 1234),
            (vec!["", "a"], 1234),
            (vec!["sub", "sub/b"], 1234),
            (vec!["sub/b", "sub"], 1234),
            (vec!["a", "sub/hard"], 1000),
            (vec!["sub/b", "sub/b"], 234),
            (vec!["link"], 1000),
            (vec!["to_sub", "sub/../sub"], 1234),
        ] {
            let paths: Vec<_> = paths.iter().map(|path| tree.path().join(path)).collect();
            let counted = Tree::of(&paths, false).unwrap();
            assert_eq!(counted, Tree { bytes, ..Tree::default() }, "{paths:?}");
            assert_eq!(counted.warnings(), [""; 0]);
        }
    }

    #[test]
    fn holes_are_not_counted() {
        let tree = tree();
        File::create(tree.path().join("hole")).unwrap().set_len(8 << 40).unwrap();
        let mut partly = File::create(tree.path().join("partly")).unwrap();
        partly.write_all(&[1; 65_536]).unwrap();
        partly.set_len(8 << 40).unwrap();
        partly.sync_all().unwrap();
        let bytes = Tree::of(&[tree.path().to_owned()], false).unwrap().bytes;
        assert!((1234 + 65_536..1 << 20).contains(&bytes), "{bytes}");
    }

    #[test]
    fn what_is_not_there_is_refused() {
        let tree = tree();
        symlink("nowhere", tree.path().join("dangling")).unwrap();
        for missing in ["missing", "dangling", "a/b"] {
            let error = format!("{:#}", Tree::of(&[tree.path().join(missing)], false).unwrap_err());
            assert!(error.contains("--size-of") && error.contains(missing) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn an_empty_tree_announces_nothing_and_says_so() {
        let empty = tempfile::tempdir().unwrap();
        fs::write(empty.path().join("nothing"), "").unwrap();
        let paths = [empty.path().to_owned()];
        assert_eq!(announced(&paths, false).unwrap(), None);
        let [warning] = Tree::of(&paths, false).unwrap().warnings().try_into().unwrap();
        assert!(warning.contains("nothing to announce"), "{warning}");
    }

    #[test]
    #[ignore = "needs root: -- --include-ignored"]
    fn what_can_be_read_counts() {
        let tree = tree();
        fs::set_permissions(tree.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for closed in ["closed", "closed_too"] {
            fs::create_dir(tree.path().join(closed)).unwrap();
            fs::write(tree.path().join(closed).join("x"), [0; 5000]).unwrap();
            fs::set_permissions(tree.path().join(closed), fs::Permissions::from_mode(0o700)).unwrap();
        }
        // the closed one itself, something in it, and all of the tree
        for (paths, bytes, unread) in [
            (vec![""], 1234, 2),
            (vec!["closed", "sub"], 1234, 1),
            (vec!["closed/x", "a"], 1000, 1),
            (vec!["closed/x", ""], 1234, 3),
            (vec!["closed"], 0, 1),
        ] {
            let paths: Vec<_> = paths.iter().map(|path| tree.path().join(path)).collect();
            let as_nobody = || {
                unistd::setfsuid(Uid::from_raw(65_534));
                Tree::of(&paths, false).unwrap()
            };
            let tree = thread::scope(|scope| scope.spawn(as_nobody).join().unwrap());
            assert_eq!((tree.bytes, tree.unread), (bytes, unread), "{paths:?}");
            assert!(tree.first_unread.unwrap().contains("Permission denied"));
        }
    }

    #[test]
    fn what_cannot_be_read_is_counted_and_the_first_is_named() {
        let mut tree = Tree { bytes: 1, ..Tree::default() };
        tree.miss("/srv/one: Permission denied".to_owned());
        assert!(tree.warnings()[0].contains("1 place could not be read") && tree.warnings()[0].contains("/srv/one"));
        tree.miss("/srv/two: Permission denied".to_owned());
        let [warning] = tree.warnings().try_into().unwrap();
        assert!(warning.contains("2 places") && warning.contains("/srv/one") && !warning.contains("/srv/two"));
    }
}
