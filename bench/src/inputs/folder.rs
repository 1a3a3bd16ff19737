//! The folder of the inputs, which has a subfolder for each size. Each input is made once.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use fastrand::Rng;

use super::{Input, fingerprint};

/// Name of the file that records the parameters of a folder's inputs, so that no benchmark uses
/// inputs made with other parameters.
const STAMP: &str = "made-with";

/// Creates the folder if it does not exist, and records the parameters `made_with` in it. The
/// folder must be empty or have been claimed with the same parameters.
///
/// # Errors
/// Returns an error if the folder has other contents, was claimed with other parameters, or cannot
/// be written to.
pub fn claim(folder: &Path, made_with: &str) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let stamp = folder.join(STAMP);
    match fs::read_to_string(&stamp) {
        Ok(found) => ensure!(
            found == made_with,
            "{} was made with {}: use another folder",
            folder.display(),
            found.trim()
        ),
        Err(_) if fs::read_dir(folder)?.next().is_some() => {
            bail!("{} has files in it that are not ours: use another folder", folder.display())
        }
        Err(_) => fs::write(&stamp, made_with)
            .with_context(|| format!("cannot write {}", stamp.display()))?,
    }
    Ok(())
}

/// Writes an input to `path` with `write`, unless the file exists. Returns the size of the new
/// input in bytes, or `None` if the file existed. A file with the final name is always complete,
/// even if the program is killed while writing.
///
/// # Errors
/// Returns an error if the input cannot be written.
pub fn make(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<u64>,
) -> Result<Option<u64>> {
    if path.is_file() {
        return Ok(None);
    }
    let context = || format!("cannot write {}", path.display());
    let folder = path.parent().context("an input is in a folder")?;
    fs::create_dir_all(folder).with_context(context)?;
    let file = tempfile::NamedTempFile::new_in(folder).with_context(context)?;
    let mut file = BufWriter::with_capacity(1 << 16, file);
    let written = write(&mut file).with_context(context)?;
    file.flush().with_context(context)?;
    file.into_inner()?.persist(path).with_context(context)?;
    Ok(Some(written))
}

/// Maximum size of a block of [`repeated`], in bytes.
const BLOCK_BYTES: u64 = 10_000_000;
/// Number of distinct blocks of [`repeated`].
const BLOCKS: usize = 10;

/// Writes at most `size` bytes of an input, in whole blocks, and returns the number of bytes
/// written. Generates only ten distinct blocks, and then repeats these in random order, because
/// generating data takes longer than writing it.
///
/// # Errors
/// Returns an error if the input cannot be written.
pub fn repeated(input: &Input, size: u64, seed: u64, out: &mut dyn Write) -> io::Result<u64> {
    let made = (0..BLOCKS as u64).map(|number| {
        let mut block = Vec::new();
        // The first block is the start of the ordinary file with this seed.
        input.write(BLOCK_BYTES, seed.wrapping_add(number << 32), &mut block)?;
        Ok(block)
    });
    let blocks: Vec<Vec<u8>> = made.collect::<io::Result<_>>()?;
    let mut random = Rng::with_seed(seed ^ fingerprint(b"repeated"));
    let mut written = 0;
    for number in 0.. {
        let chosen = if number < BLOCKS { number } else { random.usize(..BLOCKS) };
        let block = &blocks[chosen];
        if written + block.len() as u64 > size {
            break;
        }
        out.write_all(block)?;
        written += block.len() as u64;
    }
    Ok(written)
}
