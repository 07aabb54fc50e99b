//! ELF files put together by hand.

/// Where the code is.
pub const TEXT_SVMA: u64 = 0x40_1000;

/// With this in its type a section says that it is packed: it begins with a header that tells how.
pub const PACKED: u32 = 1 << 31;

/// Bytes of code.
const TEXT_LEN: usize = 4096;

/// Headers of the file and of its one segment.
const HEADERS: usize = 64 + 56;

/// Sections by name, type and contents; the names of a symbol table (type 2) are those of the section behind it.
struct Sections {
    table: Vec<[u64; 8]>,
    names: Vec<u8>,
    contents: Vec<u8>,
}

impl Sections {
    fn add(&mut self, name: &str, kind: u32, place: [u64; 2], bytes: &[u8]) {
        let link = if kind == 2 { self.table.len() as u64 + 1 } else { 0 };
        let offset = (HEADERS + self.contents.len()) as u64;
        let head = self.names.len() as u64 | u64::from(kind) << 32;
        let [flags, svma] = place;
        self.table.push([head, flags, svma, offset, bytes.len() as u64, link, 1, 24]);
        self.names.extend(name.bytes().chain([0]));
        self.contents.extend_from_slice(bytes);
    }
}

/// An x86-64 ELF file with these sections, and 4 KiB of code in `.text` and in a segment.
pub fn file(sections: &[(&str, u32, &[u8])]) -> Vec<u8> {
    let mut all = Sections { table: vec![[0; 8]], names: vec![0], contents: Vec::new() };
    all.add(".text", 1, [6, TEXT_SVMA], &[0xc3; TEXT_LEN]);
    for (name, kind, bytes) in sections {
        let flags = if kind & PACKED != 0 { 0x800 } else { 0 };
        all.add(name, kind & !PACKED, [flags, 0], bytes);
    }
    let names = [&all.names[..], b".shstrtab\0"].concat();
    all.add(".shstrtab", 3, [0, 0], &names);
    let table_at = (HEADERS + all.contents.len()) as u64;
    let count = u16::try_from(all.table.len()).unwrap_or(u16::MAX);
    let words = |words: &[u64]| words.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<u8>>();
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0\x01\0\0\0".to_vec();
    file.extend(words(&[TEXT_SVMA, 64, table_at]));
    file.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 64, 0]);
    file.extend(count.to_le_bytes());
    file.extend((count - 1).to_le_bytes());
    let len = TEXT_LEN as u64;
    file.extend(words(&[1 | 5 << 32, HEADERS as u64, TEXT_SVMA, TEXT_SVMA, len, len, 4096]));
    file.extend(all.contents);
    all.table.iter().for_each(|header| file.extend(words(header)));
    file
}

/// Makes a section of such a file so long, and gives it the place behind all others; returns how long the file is then. The
/// first of those that the file was made of is number 0.
pub fn stretch(file: &mut [u8], number: usize, len: u64) -> u64 {
    let table_at = file[0x28..].first_chunk().map_or(0, |at| u64::from_le_bytes(*at));
    let header = usize::try_from(table_at).unwrap_or(usize::MAX) + 64 * (number + 2);
    let end = file.len() as u64;
    file[header + 0x18..][..8].copy_from_slice(&end.to_le_bytes());
    file[header + 0x20..][..8].copy_from_slice(&len.to_le_bytes());
    end + len
}
