//! Numbers of any length. libFuzzer changes those that it finds in a text in place, digit by digit.

use libfuzzer_sys::fuzzer_mutate;

/// A mutator, as `fuzz_mutator!` wants one: of four changes one is to a number, if there is any.
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let changed = match seed % 4 {
        0 => change(data, size, seed / 4),
        _ => None,
    };
    changed.unwrap_or_else(|| fuzzer_mutate(data, size, max_size))
}

/// Makes another number of one in a text of `size` bytes; the seed says of which, and what. The new size; none if
/// the text has no number, or no room in `data`.
fn change(data: &mut [u8], size: usize, seed: u32) -> Option<usize> {
    let text = &data[..size];
    let begins = |at: &usize| {
        let digit = |at: usize| text[at].is_ascii_digit();
        digit(*at) && (*at == 0 || !digit(*at - 1))
    };
    let numbers: Vec<usize> = (0..size).filter(begins).collect();
    let from = *numbers.get(seed as usize % numbers.len().max(1))?;
    let digits = text[from..].iter().take_while(|b| b.is_ascii_digit());
    let behind = from + digits.count();
    // The multiplier of splitmix64; lengths are all as likely.
    let random = u64::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let number = (random >> (random % 64)).to_string();
    let grown = size - (behind - from) + number.len();
    if grown > data.len() {
        return None;
    }
    data.copy_within(behind..size, from + number.len());
    data[from..from + number.len()].copy_from_slice(number.as_bytes());
    Some(grown)
}
