//! Names of functions at addresses of a process, from the symbol tables of the files that it has
//! mapped. No debug information is needed; a file without symbols has no names.

use std::collections::BTreeMap;
use std::fs::{self, File};

use contend_sys::Pid;
use cpp_demangle::DemangleOptions;
use object::read::ReadCache;
use object::{Object as _, ObjectSegment as _, ObjectSymbol as _, SymbolKind};

/// End of the name of a file that has been deleted or replaced since.
const DELETED: &str = " (deleted)";
/// Largest number of symbols that are read from a file.
const MAX_SYMBOLS: usize = 1_000_000;

/// The code that a process has mapped, with the symbols of these files that were needed so far.
#[derive(Debug, Default)]
pub struct Symbols {
    mappings: Vec<Mapping>,
    /// The folder in which the files of the process are, and its paths begin.
    root: String,
    files: BTreeMap<String, FileSymbols>,
}

/// A part of a file that is mapped as code.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mapping {
    start: u64,
    end: u64,
    /// Offset in the file, in bytes.
    offset: u64,
    path: String,
}

/// The symbols and segments of a file.
#[derive(Debug, Default)]
struct FileSymbols {
    /// Offset in the file, address and length of each segment.
    segments: Vec<(u64, u64, u64)>,
    /// Address, length and name of each function, by address.
    functions: Vec<(u64, u64, String)>,
}

impl Symbols {
    /// Reads the process's mappings. Keeps the earlier ones if it has ended.
    pub fn update(&mut self, process: Pid) {
        let folder = format!("/proc/{}", process.as_raw_nonzero());
        let Ok(text) = fs::read_to_string(format!("{folder}/maps")) else { return };
        let program = fs::read_link(format!("{folder}/exe")).unwrap_or_default();
        // Another file may have taken the place of a deleted one. The program itself can still be read.
        let find = |mapping: Mapping| match mapping.path.ends_with(DELETED) {
            false => Some(mapping),
            true if program.as_os_str() == mapping.path.as_str() => {
                Some(Mapping { path: format!("{folder}/exe"), ..mapping })
            }
            true => None,
        };
        let mappings: Vec<Mapping> = text.lines().filter_map(parse).filter_map(find).collect();
        if !mappings.is_empty() {
            self.mappings = mappings;
        }
        // A process in a container has files of its own, but its folder is gone once it has ended.
        self.root = format!("{folder}/root");
    }

    /// Returns the name of the function that contains the address; `None` if it is unknown.
    pub fn function_at(&mut self, address: u64) -> Option<String> {
        let mapping = self.mappings.iter().find(|m| (m.start..m.end).contains(&address))?;
        let place = address - mapping.start + mapping.offset;
        let root = &self.root;
        let file = self.files.entry(mapping.path.clone()).or_insert_with(|| {
            let own = File::open(format!("{root}{}", mapping.path));
            own.or_else(|_| File::open(&mapping.path)).map_or_else(
                |_| FileSymbols::default(),
                |file| FileSymbols::read(file).unwrap_or_default(),
            )
        });
        file.function_at(place).map(readable)
    }

    /// Returns the name of the function that contains the address; if it is unknown, the name of its file
    /// in brackets, or `[unknown]`.
    pub fn place_at(&mut self, address: u64) -> String {
        if let Some(function) = self.function_at(address) {
            return function;
        }
        let mapping = self.mappings.iter().find(|m| (m.start..m.end).contains(&address));
        let path = mapping.map_or("unknown", |mapping| &mapping.path);
        format!("[{}]", path.rsplit('/').next().unwrap_or(path))
    }
}

impl FileSymbols {
    fn read(file: File) -> Result<Self, object::Error> {
        let cache = ReadCache::new(file);
        let file = object::File::parse(&cache)?;
        let segments = file.segments().map(|segment| {
            let (offset, length) = segment.file_range();
            (offset, segment.address(), length)
        });
        let segments = segments.collect();
        let symbols = file.symbols().chain(file.dynamic_symbols()).take(MAX_SYMBOLS);
        let mut functions: Vec<(u64, u64, String)> = symbols
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
            .filter_map(|symbol| {
                Some((symbol.address(), symbol.size(), symbol.name().ok()?.to_owned()))
            })
            .collect();
        functions.sort_by(|a, b| (a.0, b.1).cmp(&(b.0, a.1)));
        functions.dedup_by_key(|function| function.0);
        Ok(Self { segments, functions })
    }

    /// Returns the function at an offset in the file.
    fn function_at(&self, place: u64) -> Option<&str> {
        let (offset, address, _) = self
            .segments
            .iter()
            .find(|(offset, _, length)| (*offset..offset + length).contains(&place))?;
        let address = place - offset + address;
        let next = self.functions.partition_point(|(start, ..)| *start <= address);
        let (start, length, name) = self.functions.get(next.checked_sub(1)?)?;
        (address < start + (*length).max(1)).then_some(name)
    }
}

/// Returns the name as in the source, without parameters (C++) and the hash that Rust's compiler adds.
fn readable(name: &str) -> String {
    if let Ok(known) = rustc_demangle::try_demangle(name) {
        return format!("{known:#}");
    }
    let options = DemangleOptions::new().no_params().no_return_type();
    let demangled = name.starts_with("_Z").then(|| cpp_demangle::Symbol::new(name).ok());
    let readable =
        demangled.flatten().and_then(|symbol| symbol.demangle_with_options(&options).ok());
    readable.unwrap_or_else(|| name.to_owned())
}

/// Parses a line of `/proc/PID/maps`. Returns `None` unless it is code of a file.
fn parse(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let permissions = fields.next()?;
    let offset = fields.next()?;
    let path = fields.nth(2)?.trim_start();
    let number = |text| u64::from_str_radix(text, 16).ok();
    (permissions.as_bytes().get(2) == Some(&b'x') && path.starts_with('/')).then_some(Mapping {
        start: number(start)?,
        end: number(end)?,
        offset: number(offset)?,
        path: path.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_about_code_of_files_are_parsed() {
        let line = "55d0-55f0 r-xp 00001000 08:01 7   /usr/bin/a b (deleted)";
        let mapping = Mapping {
            start: 0x55d0,
            end: 0x55f0,
            offset: 0x1000,
            path: "/usr/bin/a b (deleted)".into(),
        };
        assert_eq!(parse(line), Some(mapping));
        assert_eq!(parse("55d0-55f0 rw-p 00001000 08:01 7   /usr/bin/a"), None, "data");
        assert_eq!(parse("7ffd0-7ffe0 r-xp 00000000 00:00 0   [vdso]"), None);
        assert_eq!(parse("7ffd0-7ffe0 r-xp 00000000 00:00 0"), None);
    }

    /// A function of this test, found by its address.
    #[inline(never)]
    fn known_function(x: u64) -> u64 {
        std::hint::black_box(x + 1)
    }

    #[test]
    fn functions_of_this_process_are_found() {
        let own = Pid::from_raw(std::process::id().cast_signed()).expect("a process id");
        let mut symbols = Symbols::default();
        symbols.update(own);
        let address = known_function as fn(u64) -> u64 as usize as u64;
        let name = symbols.function_at(address).expect("a symbol");
        assert!(name.ends_with("::known_function"), "{name}");
        assert_eq!(symbols.function_at(8), None, "nothing is mapped there");
    }

    /// A program is often replaced while it runs; another file then has its path.
    #[test]
    fn a_replaced_program_is_read_where_it_runs() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sleep");
        fs::copy("/bin/sleep", &path).expect("room");
        let mut child = std::process::Command::new(&path).arg("1000").spawn().expect("it starts");
        fs::remove_file(&path).expect("its own file");
        fs::write(&path, "another program").expect("room");
        let pid = Pid::from_child(&child);
        let mut symbols = Symbols::default();
        // A new program begins without memory.
        while symbols.mappings.is_empty() && child.try_wait().expect("a child").is_none() {
            symbols.update(pid);
        }
        child.kill().and_then(|()| child.wait()).expect("a child");
        let paths: Vec<&str> = symbols.mappings.iter().map(|mapping| &*mapping.path).collect();
        let program = format!("/proc/{}/exe", pid.as_raw_nonzero());
        assert!(paths.contains(&program.as_str()), "{paths:?}");
        assert!(paths.iter().all(|path| !path.contains("/sleep")), "{paths:?}");
    }
}
