//! Recognises code that waits by spinning.
//!
//! - A loop with the instruction that gives way to the other hardware thread of the core (`PAUSE`,
//!   `YIELD`).
//! - A loop that only reads memory and compares (x86-64): it cannot end unless another thread writes
//!   there. A loop that computes or searches changes a register.

/// Length of code on each side of an address that may belong to the same loop, in bytes.
pub const REACH_BYTES: usize = 64;
/// Largest number of instructions of a loop that only reads and compares.
const MAX_INSTRUCTIONS: usize = 8;

/// Returns whether `code` around the instruction at offset `at` is a spin loop.
pub fn is_spin_loop(code: &[u8], at: usize) -> bool {
    if cfg!(target_arch = "x86_64") {
        gives_way(code, at) || only_reads(code, at)
    } else if cfg!(target_arch = "aarch64") {
        // YIELD, ISB
        has(code, &[0x3f, 0x20, 0x03, 0xd5]) || has(code, &[0xdf, 0x3f, 0x03, 0xd5])
    } else {
        false
    }
}

fn has(code: &[u8], instruction: &[u8]) -> bool {
    code.windows(instruction.len()).any(|at| at == instruction)
}

/// Returns whether the innermost loop around the instruction at `at` contains the instruction that gives
/// way to the other hardware thread.
fn gives_way(code: &[u8], at: usize) -> bool {
    const PAUSE: &[u8] = &[0xf3, 0x90];
    // Where instructions begin is unknown, but few other bytes look like a jump back over `at`.
    let loops = (0..code.len()).filter_map(|place| {
        let Instruction { kind: Kind::Jump(by), length } = Instruction::decode(&code[place..])?
        else {
            return None;
        };
        let end = place + length;
        let start = end.checked_add_signed(by)?;
        (start..end).contains(&at).then_some(start..end)
    });
    loops.min_by_key(|body| body.end - body.start).is_some_and(|body| has(&code[body], PAUSE))
}

/// Returns whether the instruction at offset `at` belongs to a loop of instructions that only read
/// memory and compare, with at least one that reads.
fn only_reads(code: &[u8], at: usize) -> bool {
    // The loop begins at the instruction or before it.
    (at.saturating_sub(REACH_BYTES)..=at).any(|start| is_loop(code, start, at))
}

/// Returns whether a loop from `start` contains the instruction at `at`, and only reads and compares.
fn is_loop(code: &[u8], start: usize, at: usize) -> bool {
    let (mut next, mut reads, mut is_inside) = (start, false, false);
    for _ in 0..MAX_INSTRUCTIONS {
        is_inside |= next == at;
        let Some(instruction) = code.get(next..).and_then(Instruction::decode) else {
            return false;
        };
        next += instruction.length;
        match instruction.kind {
            Kind::Read => reads = true,
            Kind::Compare => {}
            Kind::Jump(by) if next.checked_add_signed(by) == Some(start) => {
                return reads && is_inside;
            }
            // A conditional jump out of the loop.
            Kind::Jump(by) if by > 0 => {}
            Kind::Jump(_) => return false,
        }
    }
    false
}

/// An instruction that a loop may contain that only reads and compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Instruction {
    kind: Kind,
    /// Length in bytes.
    length: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Reads memory, into a register or to compare it.
    Read,
    /// Compares registers, or does nothing.
    Compare,
    /// Jumps by this number of bytes from its end.
    Jump(isize),
}

impl Instruction {
    /// Decodes the first instruction. Returns `None` if it is another one.
    fn decode(code: &[u8]) -> Option<Self> {
        let of = |kind: Kind, length: usize| Some(Self { kind, length });
        // The prefix for 16-bit operands and the one for 64-bit operands or further registers.
        let has_short = code.first() == Some(&0x66);
        let code_after = &code[usize::from(has_short)..];
        let has_rex = code_after.first().is_some_and(|byte| byte & 0xf0 == 0x40);
        let prefixes = usize::from(has_short) + usize::from(has_rex);
        let opcode = &code[prefixes..];
        match *opcode {
            [0x90, ..] => of(Kind::Compare, prefixes + 1),
            [0x0f, second @ 0x80..=0x8f, ..] => {
                let _ = second;
                let by = i32::from_le_bytes(opcode.get(2..6)?.try_into().ok()?);
                of(Kind::Jump(isize::try_from(by).ok()?), prefixes + 6)
            }
            [0x70..=0x7f | 0xeb, by, ..] => {
                of(Kind::Jump(isize::from(by.cast_signed())), prefixes + 2)
            }
            // Comparisons of the accumulator with a constant.
            [0x3c | 0xa8, ..] => of(Kind::Compare, prefixes + 2),
            [0x3d | 0xa9, ..] => of(Kind::Compare, prefixes + if has_short { 3 } else { 5 }),
            // Zero or sign extension of a byte or word in memory; multi-byte no-operations.
            [0x0f, 0xb6 | 0xb7 | 0xbe | 0xbf, ..] => {
                let operand = Operand::decode(&opcode[2..])?;
                operand.is_memory.then_some(())?;
                of(Kind::Read, prefixes + 2 + operand.length)
            }
            [0x0f, 0x1f, ..] => {
                of(Kind::Compare, prefixes + 2 + Operand::decode(&opcode[2..])?.length)
            }
            // MOV from memory.
            [0x8a | 0x8b, ..] => {
                let operand = Operand::decode(&opcode[1..])?;
                operand.is_memory.then_some(())?;
                of(Kind::Read, prefixes + 1 + operand.length)
            }
            // CMP and TEST of two operands.
            [0x38..=0x3b | 0x84 | 0x85, ..] => {
                let operand = Operand::decode(&opcode[1..])?;
                of(operand.kind(), prefixes + 1 + operand.length)
            }
            // CMP and TEST with a constant.
            [first @ (0x80 | 0x81 | 0x83 | 0xf6 | 0xf7), ..] => {
                let operand = Operand::decode(&opcode[1..])?;
                let is_test = first >= 0xf6;
                (operand.extension == if is_test { 0 } else { 7 }).then_some(())?;
                let constant = match first {
                    0x81 | 0xf7 if has_short => 2,
                    0x81 | 0xf7 => 4,
                    _ => 1,
                };
                of(operand.kind(), prefixes + 1 + operand.length + constant)
            }
            _ => None,
        }
    }
}

/// The operands that the `ModR/M` byte describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Operand {
    is_memory: bool,
    /// The register, or an extension of the opcode.
    extension: u8,
    /// Length in bytes, with the byte itself.
    length: usize,
}

impl Operand {
    fn decode(code: &[u8]) -> Option<Self> {
        let byte = *code.first()?;
        let (mode, extension, base) = (byte >> 6, byte >> 3 & 7, byte & 7);
        let has_index = mode != 3 && base == 4;
        let no_base = has_index && mode == 0 && code.get(1)? & 7 == 5;
        let displacement = match mode {
            0 if base == 5 || no_base => 4,
            1 => 1,
            2 => 4,
            _ => 0,
        };
        Some(Self {
            is_memory: mode != 3,
            extension,
            length: 1 + usize::from(has_index) + displacement,
        })
    }

    fn kind(self) -> Kind {
        if self.is_memory { Kind::Read } else { Kind::Compare }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_gives_way_spins() {
        // mov eax, [rdi]; pause; test eax, eax; je -10; imul rax, rcx; dec rcx; jne -9
        let code = [
            0x8b, 0x07, 0xf3, 0x90, 0x85, 0xc0, 0x74, 0xf8, 0x48, 0x0f, 0xaf, 0xc1, 0x48, 0xff,
            0xc9, 0x75, 0xf7,
        ];
        for at in [0, 2, 4, 6] {
            assert!(gives_way(&code, at), "{at}");
        }
        assert!(!gives_way(&code, 8), "the next loop computes");
        assert!(!gives_way(&code[8..], 0) && !gives_way(&[], 0));
    }

    /// Loops as compilers write them; each with its instructions' offsets.
    #[test]
    fn a_loop_that_only_reads_spins() {
        // mov rax, [rip + 0x2f1a]; test rax, rax; je -12
        let flag = [0x48, 0x8b, 0x05, 0x1a, 0x2f, 0, 0, 0x48, 0x85, 0xc0, 0x74, 0xf4];
        for at in [0, 7, 10] {
            assert!(only_reads(&flag, at), "{at}");
        }
        assert!(!only_reads(&flag, 3), "not the start of an instruction");
        // cmp dword ptr [rdi], 0; je -5
        assert!(only_reads(&[0x83, 0x3f, 0x00, 0x74, 0xfb], 0));
        // movzx eax, byte ptr [rbx + 8]; test al, al; jne out; jmp -10
        let two = [0x0f, 0xb6, 0x43, 0x08, 0x84, 0xc0, 0x75, 0x20, 0xeb, 0xf6];
        assert!(only_reads(&two, 4));
        // cmp eax, [rsp + 0x0c]; jne -6
        assert!(only_reads(&[0x3b, 0x44, 0x24, 0x0c, 0x75, 0xfa], 0));
    }

    #[test]
    fn a_loop_that_computes_or_searches_does_not_spin() {
        // cmp byte ptr [rdi], 0; lea rdi, [rdi + 1]; jne -9
        assert!(!only_reads(&[0x80, 0x3f, 0x00, 0x48, 0x8d, 0x7f, 0x01, 0x75, 0xf7], 0));
        // add rax, [rdi]; dec rcx; jne -8
        assert!(!only_reads(&[0x48, 0x03, 0x07, 0x48, 0xff, 0xc9, 0x75, 0xf8], 0));
        // test eax, eax; jne -4: reads no memory
        assert!(!only_reads(&[0x85, 0xc0, 0x75, 0xfc], 0));
        assert!(!only_reads(&[], 0) && !only_reads(&[0x8b], 0));
    }
}
