//! Which files a pattern of `include` names.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::load::folder_of;

/// Whether it is a pattern at all, and not the path of one file.
pub(super) fn has_wildcard(pattern: &str) -> bool {
    pattern.contains(['*', '?'])
}

/// The files that match, sorted, or why the pattern cannot be followed. A folder that is not there holds no file: a package may
/// ship the pattern without the folder.
pub(super) fn matching_files(pattern: &Path) -> Result<Vec<PathBuf>, String> {
    let folder = folder_of(pattern);
    let Some(name) = pattern
        .file_name()
        .and_then(OsStr::to_str)
        .filter(|_| !has_wildcard(&folder.to_string_lossy()))
    else {
        return Err(
            "wildcards are for the file's name, not for its folder: \"conf.d/*.toml\"".to_owned(),
        );
    };
    let listed = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let entries = match fs::read_dir(listed) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("cannot list `{}`: {error}", listed.display())),
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut paths: Vec<PathBuf> = names
        .filter(|file| wildcard_match(name, file))
        .map(|file| folder.join(file))
        .collect();
    paths.sort();
    Ok(paths)
}

/// As a shell does it: `*` is any characters, `?` is one, and neither takes the dot of a hidden file.
fn wildcard_match(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    matches_from(
        &pattern.chars().collect::<Vec<_>>(),
        &name.chars().collect::<Vec<_>>(),
    )
}

/// Remembers the last `*` alone and retries from there: linear in memory, and at worst the product of both lengths in time.
fn matches_from(pattern: &[char], name: &[char]) -> bool {
    let (mut at, mut position) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while position < name.len() {
        match pattern.get(at) {
            Some('*') => {
                retry = Some((at + 1, position));
                at += 1;
            }
            Some(wanted) if *wanted == '?' || *wanted == name[position] => {
                at += 1;
                position += 1;
            }
            _ => {
                let Some((after_star, taken)) = retry else {
                    return false;
                };
                retry = Some((after_star, taken + 1));
                (at, position) = (after_star, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    // A pattern matches as in a shell.
    #[test]
    fn wildcards_match_as_in_a_shell() {
        for (pattern, name, matches) in [
            ("*.toml", "a.toml", true),
            ("*.toml", ".toml", false),
            ("*.toml", ".a.toml", false),
            (".*", ".a", true),
            ("*.toml", "a.toml~", false),
            ("a?c*", "abcdef", true),
            ("a?c", "ac", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*ab", "aab", true),
            ("*", "", true),
        ] {
            assert_eq!(wildcard_match(pattern, name), matches, "{pattern} {name}");
        }
    }
}
