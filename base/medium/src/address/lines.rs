//! Cache-line flushes: the processor's instructions that make stores durable.
//!
//! Purpose: [`Persist`] by instructions: CLWB, else CLFLUSHOPT, else CLFLUSH on x86-64, detected at
//! run time; DC CVAP on aarch64. Large copies are streamed past the caches.
//! Invariants: flushes of a thread are ordered by its next fence, as the trait says.
//! Thread safety: any thread. Counters are spread over cache lines by thread, so that counting does
//! not make threads wait for each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::address::persist::{Flushing, Persist, PersistCounts, Site};
use crate::address::region::Region;

/// Bytes of a cache line on all processors with a flush instruction that is known here.
const LINE_BYTES: u64 = 64;
/// Copies of at least this many bytes are streamed, as far as they are whole lines. A line that is
/// stored past the caches and fenced took 105 ns where one that was stored, flushed and fenced took
/// 168; sixteen took 133 against 208. Less than a line is not worth checking.
const STREAM_BYTES_MIN: usize = 64;
/// Counters: a power of two.
const COUNTERS: usize = 16;

/// The instruction that flushes a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Instruction {
    #[cfg(target_arch = "x86_64")]
    Clwb,
    #[cfg(target_arch = "x86_64")]
    ClflushOpt,
    #[cfg(target_arch = "x86_64")]
    Clflush,
    #[cfg(target_arch = "aarch64")]
    DcCvap,
    None,
}

/// Flushes lines of the memory of this machine.
#[derive(Debug)]
pub(crate) struct Lines {
    instruction: Instruction,
    counters: [Counter; COUNTERS],
}

/// Two cache lines, because processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Counter {
    lines: AtomicU64,
    fences: AtomicU64,
}

/// Flushes of this machine's cache lines; `None` when the processor has no flush that is known
/// here.
pub(crate) fn lines(how: Flushing) -> Option<Arc<dyn Persist>> {
    let lines = if how == Flushing::None { Some(Lines::none()) } else { Lines::detect() };
    lines.map(|lines| Arc::new(lines) as Arc<dyn Persist>)
}

impl Lines {
    /// Uses the best instruction of this processor; `None` if none is known.
    pub(crate) fn detect() -> Option<Self> {
        Some(Self::with(detect()?))
    }

    /// Without flushes.
    pub(crate) fn none() -> Self {
        Self::with(Instruction::None)
    }

    fn with(instruction: Instruction) -> Self {
        Self { instruction, counters: Default::default() }
    }

    /// The counter of this thread, or one that it shares with few.
    #[inline]
    fn counter(&self) -> &Counter {
        thread_local!(static PLACE: u8 = const { 0 });
        // Thread-locals of different threads lie at least a page apart.
        let page = PLACE.with(|place| std::ptr::from_ref(place).addr()) >> 12;
        &self.counters[(page ^ page >> 4 ^ page >> 9) % COUNTERS]
    }

    /// Counts. A locked instruction would wait for all flushes before it, as a fence does; so
    /// threads that share a counter may lose some of each other's counts.
    #[inline]
    fn count(counter: &AtomicU64, more: u64) {
        let sum = counter.load(Ordering::Relaxed).wrapping_add(more);
        counter.store(sum, Ordering::Relaxed);
    }

    #[inline]
    fn flush_range(&self, address: *const u8, len: u64) -> u64 {
        let skipped = address.addr() as u64 % LINE_BYTES;
        let first = address.wrapping_sub(skipped as usize);
        let count = (skipped + len).div_ceil(LINE_BYTES);
        for index in 0..count {
            flush_line(self.instruction, first.wrapping_add((index * LINE_BYTES) as usize));
        }
        count
    }
}

/// The address of a range that must lie in the region.
#[inline]
fn address(region: &Region, offset: u64, len: u64) -> *mut u8 {
    let lies_within = offset.checked_add(len).is_some_and(|end| end <= region.bytes());
    assert!(lies_within, "{len} bytes at {offset} lie beyond a region of {}", region.bytes());
    region.base().as_ptr().wrapping_add(offset as usize)
}

impl Persist for Lines {
    #[inline]
    fn flush_at(&self, _site: Site, region: &Region, offset: u64, len: u64) {
        let address = address(region, offset, len);
        if self.instruction != Instruction::None && len > 0 {
            let count = self.flush_range(address, len);
            Self::count(&self.counter().lines, count);
        }
    }

    #[inline]
    fn fence_at(&self, _site: Site) {
        fence();
        Self::count(&self.counter().fences, 1);
    }

    unsafe fn copy_at(&self, site: Site, region: &Region, offset: u64, bytes: &[u8]) {
        let target = address(region, offset, bytes.len() as u64);
        if self.instruction == Instruction::None || bytes.len() < STREAM_BYTES_MIN {
            // SAFETY: the range lies in the region (checked), is mapped, and no other code uses it,
            // as our caller promises; so `bytes`, a live reference, does not overlap it.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) };
            self.flush_at(site, region, offset, bytes.len() as u64);
            return;
        }
        // SAFETY: as above.
        let flushed = unsafe { stream(self, target, bytes) };
        Self::count(&self.counter().lines, flushed);
    }

    fn instruction(&self) -> &'static str {
        match self.instruction {
            #[cfg(target_arch = "x86_64")]
            Instruction::Clwb => "CLWB",
            #[cfg(target_arch = "x86_64")]
            Instruction::ClflushOpt => "CLFLUSHOPT",
            #[cfg(target_arch = "x86_64")]
            Instruction::Clflush => "CLFLUSH",
            #[cfg(target_arch = "aarch64")]
            Instruction::DcCvap => "DC CVAP",
            Instruction::None => "none",
        }
    }

    fn counts(&self) -> PersistCounts {
        let sum = |count: fn(&Counter) -> &AtomicU64| {
            self.counters.iter().map(|counter| count(counter).load(Ordering::Relaxed)).sum()
        };
        PersistCounts { lines: sum(|counter| &counter.lines), fences: sum(|c| &c.fences) }
    }
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Option<Instruction> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    /// Leaf 7, EBX: the available instructions.
    const CLWB: u32 = 1 << 24;
    const CLFLUSHOPT: u32 = 1 << 23;
    let features = if __cpuid(0).eax >= 7 { __cpuid_count(7, 0).ebx } else { 0 };
    Some(match features {
        features if features & CLWB != 0 => Instruction::Clwb,
        features if features & CLFLUSHOPT != 0 => Instruction::ClflushOpt,
        // Part of SSE2, and so of x86-64.
        _ => Instruction::Clflush,
    })
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn flush_line(instruction: Instruction, line: *const u8) {
    use std::arch::asm;
    match instruction {
        // SAFETY: changes no byte; the processor has it (CPUID); a line of a mapped range.
        Instruction::Clwb => unsafe {
            asm!("clwb [{0}]", in(reg) line, options(nostack, preserves_flags));
        },
        // SAFETY: as above.
        Instruction::ClflushOpt => unsafe {
            asm!("clflushopt [{0}]", in(reg) line, options(nostack, preserves_flags));
        },
        // SAFETY: as above; part of x86-64.
        Instruction::Clflush => unsafe {
            asm!("clflush [{0}]", in(reg) line, options(nostack, preserves_flags));
        },
        Instruction::None => {}
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn fence() {
    // SAFETY: orders stores and flushes, changes no byte. By asm and not by an intrinsic, so that
    // the compiler moves no store over it either.
    unsafe { std::arch::asm!("sfence", options(nostack, preserves_flags)) };
}

/// Stores whole lines past the caches, and the rest as usual, flushed. Returns the number of lines.
///
/// # Safety
/// `target` is valid for that many bytes and no other code reads them.
#[cfg(target_arch = "x86_64")]
unsafe fn stream(lines: &Lines, target: *mut u8, bytes: &[u8]) -> u64 {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    const VECTOR_BYTES: usize = 16;
    let head = target.align_offset(LINE_BYTES as usize).min(bytes.len());
    let body = (bytes.len() - head) / LINE_BYTES as usize * LINE_BYTES as usize;
    for (start, len) in [(0, head), (head + body, bytes.len() - head - body)] {
        if len == 0 {
            continue;
        }
        let source = bytes[start..start + len].as_ptr();
        let part = target.wrapping_add(start);
        // SAFETY: a part of both ranges, which do not overlap: no other code uses our caller's.
        unsafe { std::ptr::copy_nonoverlapping(source, part, len) };
        lines.flush_range(part, len as u64);
    }
    for (index, vector) in bytes[head..head + body].chunks_exact(VECTOR_BYTES).enumerate() {
        // SAFETY: sixteen bytes of a slice, of any alignment; SSE2 is part of x86-64.
        let value = unsafe { _mm_loadu_si128(vector.as_ptr().cast()) };
        let part = target.wrapping_add(head + index * VECTOR_BYTES).cast::<__m128i>();
        // SAFETY: within the target, aligned to sixteen bytes because `head` ends at a line.
        unsafe { _mm_stream_si128(part, value) };
    }
    (target.addr() as u64 % LINE_BYTES + bytes.len() as u64).div_ceil(LINE_BYTES)
}

#[cfg(target_arch = "aarch64")]
fn detect() -> Option<Instruction> {
    std::arch::is_aarch64_feature_detected!("dpb").then_some(Instruction::DcCvap)
}

#[cfg(target_arch = "aarch64")]
#[inline]
fn flush_line(instruction: Instruction, line: *const u8) {
    if instruction == Instruction::DcCvap {
        // SAFETY: DC CVAP by its encoding, which every assembler knows: changes no byte; the
        // processor has it (detected); a line of a mapped range.
        unsafe {
            std::arch::asm!("sys #3, c7, c12, #1, {0}", in(reg) line,
                options(nostack, preserves_flags));
        }
    }
}

#[cfg(target_arch = "aarch64")]
#[inline]
fn fence() {
    // SAFETY: waits for stores and cache maintenance, changes no byte.
    unsafe { std::arch::asm!("dsb ish", options(nostack, preserves_flags)) };
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn detect() -> Option<Instruction> {
    None
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
fn flush_line(_instruction: Instruction, _line: *const u8) {}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
fn fence() {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

/// Stores and flushes. Returns the number of lines.
///
/// # Safety
/// `target` is valid for that many bytes and no other code reads them.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn stream(lines: &Lines, target: *mut u8, bytes: &[u8]) -> u64 {
    // SAFETY: our caller promises it; `bytes`, a live reference, does not overlap.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) };
    lines.flush_range(target, bytes.len() as u64)
}
