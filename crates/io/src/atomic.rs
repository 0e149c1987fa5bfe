//! Files that appear whole or not at all.

use osteon_spec::{Error, Result};
use std::io::{BufWriter, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// The open file that a writer fills.
pub(crate) type Out = BufWriter<NamedTempFile>;

/// Writes a file under a temporary name in the same folder, syncs it, and gives it its name. When
/// anything fails, what was there before is there still, and the temporary file is gone.
pub(crate) fn write<T>(path: &Path, fill: impl FnOnce(&mut Out) -> Result<T>) -> Result<T> {
    let fail =
        |what: &'static str| move |e| Error::io(format!("cannot {what} {}", path.display()), e);
    let folder = path
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".osteon-");
    #[cfg(unix)]
    builder.permissions(permissions(path));
    let temporary = builder.tempfile_in(folder).map_err(fail("create"))?;
    let mut out = BufWriter::with_capacity(1 << 20, temporary);
    let value = fill(&mut out).map_err(|e| e.context(path.display()))?;
    let temporary = out
        .into_inner()
        .map_err(|e| fail("write")(e.into_error()))?;
    temporary.as_file().sync_all().map_err(fail("write"))?;
    temporary
        .persist(path)
        .map_err(|e| fail("write")(e.error))?;
    // The new name lasts once the folder is on disk too; not every system can say so.
    if let Ok(folder) = std::fs::File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(value)
}

/// The permissions of the file that is replaced, or what other programs ask for a new one; the system takes
/// the process's umask from both.
#[cfg(unix)]
fn permissions(path: &Path) -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).map_or(std::fs::Permissions::from_mode(0o666), |m| m.permissions())
}

/// Writes bytes, with this crate's error.
pub(crate) fn put(out: &mut impl Write, bytes: &[u8]) -> Result<()> {
    out.write_all(bytes)
        .map_err(|e| Error::io("cannot write", e))
}
