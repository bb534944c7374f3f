#![doc = include_str!("../../../docs/heap-guide.md")]
