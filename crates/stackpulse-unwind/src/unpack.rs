//! Sections as they were before they were packed: SHF_COMPRESSED ones, and the ELF file in `.gnu_debugdata`.

use object::{CompressedData, CompressionFormat, ObjectSection};
use std::io::Read;

/// Returns a section's contents; `None` if it is damaged or larger than `max_bytes`.
pub(crate) fn contents<'a>(section: &impl ObjectSection<'a>, max_bytes: u64) -> Option<Vec<u8>> {
    let CompressedData { format, data, uncompressed_size } = section.compressed_data().ok()?;
    let stated =
        usize::try_from(uncompressed_size).ok().filter(|_| uncompressed_size <= max_bytes)?;
    // One byte more than stated shows that there is more.
    let bytes = match format {
        CompressionFormat::None => return Some(data.to_vec()),
        CompressionFormat::Zlib => {
            read_up_to(flate2::read::ZlibDecoder::new(data), uncompressed_size.checked_add(1)?)?
        }
        CompressionFormat::Zstandard => {
            let decoder = zstd::stream::read::Decoder::with_buffer(data).ok()?;
            read_up_to(decoder, uncompressed_size.checked_add(1)?)?
        }
        _ => return None,
    };
    (bytes.len() == stated).then_some(bytes)
}

/// Returns the ELF file that is packed with xz; `None` if it is damaged or larger than `max_bytes`.
pub(crate) fn packed_file(packed: &[u8], max_bytes: u64) -> Option<Vec<u8>> {
    let limit = max_bytes.checked_add(1)?;
    let bytes = read_up_to(lzma_rust2::XzReader::new(packed, false), limit)?;
    (bytes.len() as u64 <= max_bytes).then_some(bytes)
}

fn read_up_to(from: impl Read, limit: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(limit).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
