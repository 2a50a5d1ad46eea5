// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small file that runs keep for the next one, in JSON: read with care, replaced whole, by one run at a time.

use std::{
    fmt,
    fs::{DirBuilder, File},
    io::{ErrorKind, Read},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use anyhow::{Result, bail};
use lowtide_kernel::Caller;
use lowtide_net::file;
use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg},
    sys::stat::Mode,
};
use serde::{Serialize, de::DeserializeOwned};

use super::place::{self, Place};

/// None of these files grows so large by itself.
const LARGEST: u64 = 1 << 20;
/// Another run that ends at the same time needs milliseconds.
const PATIENCE: usize = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// The file, which need not be there yet.
#[derive(Debug)]
pub(super) struct StateFile {
    path: PathBuf,
    /// What its field `schema` says.
    schema: &'static str,
    /// Whose rights it is opened with.
    caller: Caller,
}

/// It is one of ours, but not whole. The next run that writes it begins it anew.
#[derive(Debug)]
pub(super) struct Damaged(anyhow::Error);

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it is damaged ({}), and begins anew when a job has ended well", self.0)
    }
}

impl std::error::Error for Damaged {}

/// The object in it.
#[derive(Debug, Serialize, serde::Deserialize)]
struct Contents<T> {
    schema: String,
    #[serde(flatten)]
    rest: T,
}

impl StateFile {
    pub(super) fn new(path: &Path, schema: &'static str, caller: Caller) -> StateFile {
        StateFile { path: path.to_owned(), schema, caller }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What it holds; the default if it is not there.
    ///
    /// # Errors
    /// [`Damaged`]; or it cannot be read, is none of ours, or is no regular file of a sensible size.
    pub(super) fn read<T: Default + DeserializeOwned>(&self) -> Result<T> {
        let bytes = || match Place::open(&self.path) {
            Ok(place) => bytes(&place),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        };
        match self.caller.act(bytes)?? {
            None => Ok(T::default()),
            Some(bytes) if self.is_ours(&bytes) => Ok(parse(self.schema, &bytes).map_err(Damaged)?),
            Some(_) => bail!("it is no file of Lowtide's; name another one"),
        }
    }

    /// Lets `edit` change what it holds. A damaged file of ours begins anew; one that is not ours stays as it is.
    ///
    /// # Errors
    /// It cannot be read or written, or is none of ours.
    pub(super) fn change<T: Default + Serialize + DeserializeOwned>(
        &self,
        edit: impl FnOnce(&mut T) + Send,
    ) -> Result<()> {
        self.caller.act(|| self.change_as_caller(edit))?
    }

    fn change_as_caller<T: Default + Serialize + DeserializeOwned>(&self, edit: impl FnOnce(&mut T)) -> Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(place::parent(&self.path))?;
        let place = Place::open(&self.path)?;
        let _lock = lock(&place)?;
        let mut rest = match bytes(&place)? {
            None => T::default(),
            Some(bytes) if self.is_ours(&bytes) => parse(self.schema, &bytes).unwrap_or_default(),
            Some(_) => bail!("it is no file of Lowtide's and stays as it is; name another one"),
        };
        edit(&mut rest);
        let text = print(self.schema, rest)?;
        // only its owner may read it
        Ok(place.replace(&text, Mode::from_bits_truncate(0o600))?)
    }

    /// An empty file holds nothing that could be lost; a damaged one is known by the name of its schema.
    fn is_ours(&self, bytes: &[u8]) -> bool {
        let family = self.schema.split('/').next().unwrap_or_default();
        let head = String::from_utf8_lossy(&bytes[..bytes.len().min(100)]);
        bytes.is_empty() || head.trim_start().starts_with('{') && head.contains(family)
    }
}

fn bytes(place: &Place) -> Result<Option<Vec<u8>>> {
    let file = match place.read() {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => bail!("it is a symbolic link; name the file"),
        Err(error) => return Err(error.into()),
    };
    file::regular(&file.metadata()?)?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        bail!("it is larger than 1 MiB, which no file of Lowtide's is");
    }
    Ok(Some(bytes))
}

/// A file of this schema, read and printed again.
pub(super) fn again<T: Serialize + DeserializeOwned>(schema: &str, text: &[u8]) -> Result<Vec<u8>> {
    print(schema, parse::<T>(schema, text)?)
}

/// What a file of this schema holds.
fn parse<T: DeserializeOwned>(schema: &str, text: &[u8]) -> Result<T> {
    let contents: Contents<T> = serde_json::from_slice(text)?;
    if contents.schema != schema {
        bail!("its schema is {:?}, not {schema:?}", contents.schema);
    }
    Ok(contents.rest)
}

/// The text of such a file.
fn print<T: Serialize>(schema: &str, rest: T) -> Result<Vec<u8>> {
    Ok(serde_json::to_vec_pretty(&Contents { schema: schema.to_owned(), rest })?)
}

/// One run at a time.
fn lock(place: &Place) -> Result<Flock<File>> {
    let mut directory = File::from(place.directory().try_clone_to_owned()?);
    for _ in 0..PATIENCE {
        match Flock::lock(directory, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((again, Errno::EWOULDBLOCK)) => directory = again,
            Err((_, errno)) => return Err(errno.into()),
        }
        thread::sleep(PAUSE);
    }
    bail!("another process holds the lock on its directory")
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use nix::{sys::stat::Mode, unistd::mkfifo};

    use super::*;

    #[derive(Debug, Default, PartialEq, Serialize, serde::Deserialize)]
    struct Numbers {
        numbers: Vec<u32>,
    }

    fn file() -> (tempfile::TempDir, StateFile) {
        let directory = tempfile::tempdir().unwrap();
        let file = StateFile::new(
            &directory.path().join("state/numbers.json"),
            "lowtide-numbers/1",
            Caller::of_this_process(),
        );
        (directory, file)
    }

    fn push(file: &StateFile, number: u32) -> Result<()> {
        file.change(|it: &mut Numbers| it.numbers.push(number))
    }

    #[test]
    fn it_is_made_changed_and_read() {
        let (_directory, file) = file();
        assert_eq!(file.read::<Numbers>().unwrap(), Numbers::default());
        push(&file, 1).unwrap();
        push(&file, 2).unwrap();
        assert_eq!(file.read::<Numbers>().unwrap().numbers, [1, 2]);
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(file.path()).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600, "it is nobody else's business");
        assert_eq!(fs::read_dir(file.path().parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn runs_that_end_together_keep_what_the_other_wrote() {
        let (_directory, file) = file();
        thread::scope(|scope| {
            for number in 0..8 {
                let file = &file;
                scope.spawn(move || push(file, number).unwrap());
            }
        });
        assert_eq!(file.read::<Numbers>().unwrap().numbers.len(), 8);
    }

    #[test]
    fn a_foreign_file_is_left_alone_and_a_damaged_one_of_ours_replaced() {
        for (text, readable, writable) in [
            (r#"{"schema":"lowtide-numbers/1","numbers":[7]}"#, true, true),
            (r#"{"schema":"lowtide-numbers/1","numbers":[7"#, false, true),
            (r#"{"schema":"lowtide-numbers/1","numbers":[-7]}"#, false, true),
            (r#"{"schema":"lowtide-numbers/2","numbers":[7]}"#, false, true),
            ("", false, true),
            (r#"{"schema":"lowtide-report/1"}"#, false, false),
            ("root:x:0:0:root:/root:/bin/bash\n", false, false),
        ] {
            let (_directory, file) = file();
            fs::create_dir_all(file.path().parent().unwrap()).unwrap();
            fs::write(file.path(), text).unwrap();
            let read = file.read::<Numbers>();
            assert_eq!(read.is_ok(), readable, "{text}: {read:?}");
            assert_eq!(push(&file, 9).is_ok(), writable, "{text}");
            assert_eq!(fs::read_to_string(file.path()).unwrap() == text, !writable, "{text}");
        }
    }

    #[test]
    fn what_is_no_file_or_too_large_is_one_sentence() {
        let (directory, _) = file();
        let place = |name: &str| directory.path().join(name);
        mkfifo(&place("fifo"), Mode::from_bits_truncate(0o600)).unwrap();
        fs::create_dir(place("directory")).unwrap();
        fs::write(place("target"), r#"{"schema":"lowtide-numbers/1","numbers":[]}"#).unwrap();
        symlink("target", place("link")).unwrap();
        fs::write(place("large"), vec![b' '; LARGEST as usize + 1]).unwrap();
        for (name, sentence) in [
            ("fifo", "a pipe or a device"),
            ("directory", "a directory; name a file"),
            ("link", "a symbolic link"),
            ("large", "larger than 1 MiB"),
        ] {
            let file = StateFile::new(&place(name), "lowtide-numbers/1", Caller::of_this_process());
            let error = file.read::<Numbers>().unwrap_err().to_string();
            assert!(error.contains(sentence), "{name}: {error}");
            assert!(push(&file, 1).is_err(), "{name}");
        }
    }
}
