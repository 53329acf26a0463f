//! The hashes that formats use as checksums: CRC-32, SHA-256 and Keccak-256.
//!
//! Inputs are a few dozen public bytes, so these are written to be short, not fast, and not for secrets.

/// CRC-32 as in zip and gzip.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &byte| {
        (0..8).fold(
            crc ^ u32::from(byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 },
        )
    })
}

#[rustfmt::skip]
const SHA256_ROUNDS: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

/// The most bytes [`sha256`] hashes: two blocks less the padding.
const SHA256_INPUT_MAX: usize = 119;

/// SHA-256 of at most [`SHA256_INPUT_MAX`] bytes; `None` for more.
pub(super) fn sha256(bytes: &[u8]) -> Option<[u8; 32]> {
    if bytes.len() > SHA256_INPUT_MAX {
        return None;
    }
    let mut padded = [0u8; 128];
    padded[..bytes.len()].copy_from_slice(bytes);
    padded[bytes.len()] = 0x80;
    let end = if bytes.len() < 56 { 64 } else { 128 };
    padded[end - 8..end].copy_from_slice(&(bytes.len() as u64 * 8).to_be_bytes());
    let mut state =
        [0x6a09e667u32, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];
    padded[..end].chunks_exact(64).for_each(|block| sha256_block(&mut state, block));
    let mut out = [0; 32];
    out.chunks_exact_mut(4).zip(state).for_each(|(chunk, word)| chunk.copy_from_slice(&word.to_be_bytes()));
    Some(out)
}

fn sha256_block(state: &mut [u32; 8], block: &[u8]) {
    let mut w = [0u32; 64];
    for (word, bytes) in w.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes.iter().fold(0, |word, &byte| word << 8 | u32::from(byte));
    }
    for i in 16..64 {
        let s0 = w[i - 15].rotate_right(7) ^ w[i - 15].rotate_right(18) ^ w[i - 15] >> 3;
        let s1 = w[i - 2].rotate_right(17) ^ w[i - 2].rotate_right(19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16].wrapping_add(s0).wrapping_add(w[i - 7]).wrapping_add(s1);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (word, round) in w.iter().zip(SHA256_ROUNDS) {
        let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = e & f ^ !e & g;
        let t1 = h.wrapping_add(s1).wrapping_add(choice).wrapping_add(round).wrapping_add(*word);
        let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let t2 = s0.wrapping_add(a & b ^ a & c ^ b & c);
        (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(t1), c, b, a, t1.wrapping_add(t2));
    }
    for (slot, word) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *slot = slot.wrapping_add(word);
    }
}

/// Bytes one Keccak-256 permutation absorbs.
const KECCAK_RATE: usize = 136;

/// Keccak-256 (Ethereum's, with the original padding) of less than [`KECCAK_RATE`] bytes; `None` for more.
pub(super) fn keccak256(bytes: &[u8]) -> Option<[u8; 32]> {
    let mut block = [0u8; KECCAK_RATE];
    block.get_mut(..bytes.len())?.copy_from_slice(bytes);
    *block.get_mut(bytes.len())? = 0x01;
    block[KECCAK_RATE - 1] |= 0x80;
    let mut state = [0u64; 25];
    for (lane, bytes) in state.iter_mut().zip(block.chunks_exact(8)) {
        *lane = bytes.iter().rev().fold(0, |lane, &byte| lane << 8 | u64::from(byte));
    }
    keccak_permutation(&mut state);
    let mut out = [0; 32];
    out.chunks_exact_mut(8).zip(state).for_each(|(chunk, lane)| chunk.copy_from_slice(&lane.to_le_bytes()));
    Some(out)
}

/// Keccak-f[1600]. The round constants come from the linear feedback register that defines them.
fn keccak_permutation(state: &mut [u64; 25]) {
    let mut register = 1u8;
    for _ in 0..24 {
        let mut columns = [0; 5];
        (0..25).for_each(|i| columns[i % 5] ^= state[i]);
        for (i, lane) in state.iter_mut().enumerate() {
            *lane ^= columns[(i + 4) % 5] ^ columns[(i + 1) % 5].rotate_left(1);
        }
        let (mut x, mut y, mut moved) = (1, 0, state[1]);
        for t in 0..24u32 {
            (x, y) = (y, (2 * x + 3 * y) % 5);
            let slot = &mut state[x + 5 * y];
            (*slot, moved) = (moved.rotate_left((t + 1) * (t + 2) / 2 % 64), *slot);
        }
        for row in state.chunks_exact_mut(5) {
            let old = [row[0], row[1], row[2], row[3], row[4]];
            (0..5).for_each(|x| row[x] = old[x] ^ !old[(x + 1) % 5] & old[(x + 2) % 5]);
        }
        for bit in 0..7 {
            if register & 1 == 1 {
                state[0] ^= 1 << ((1u32 << bit) - 1);
            }
            register = register << 1 ^ if register & 0x80 != 0 { 0x71 } else { 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn published_test_vectors() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        let sha = |bytes: &[u8]| hex(&sha256(bytes).expect("short input"));
        assert_eq!(sha(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(
            sha(b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        );
        let keccak = |bytes: &[u8]| hex(&keccak256(bytes).expect("short input"));
        assert_eq!(keccak(b""), "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470");
        assert_eq!(keccak(b"abc"), "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45");
    }

    #[test]
    fn long_input_is_refused() {
        assert_eq!(sha256(&[0; 120]), None);
        assert_eq!(keccak256(&[0; 136]), None);
    }
}
