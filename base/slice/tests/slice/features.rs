//! The traits of other crates. `cargo test -p adamant-slice --all-features` runs all of these.

#[cfg(feature = "serde")]
mod serde {
    use adamant_slice::{Slice, Text};

    #[test]
    fn bytes_and_text_come_back() {
        for bytes in [&b""[..], b"abc", &[255; 21], &[7; 5_000]] {
            let slice = Slice::new(bytes);
            let json = serde_json::to_string(&slice).unwrap();
            assert_eq!(json, serde_json::to_string(&bytes).unwrap());
            assert_eq!(serde_json::from_str::<Slice>(&json).unwrap(), bytes);
        }
        let text = Text::from("h\u{e9} - twenty-one bytes and more");
        let json = serde_json::to_string(&text).unwrap();
        assert_eq!(serde_json::from_str::<Text>(&json).unwrap(), text);
        assert_eq!(serde_json::from_str::<Slice>(&json).unwrap(), text.as_bytes());
        assert!(serde_json::from_str::<Slice>("[1, 256]").is_err());
        assert!(serde_json::from_str::<Text>("[104]").is_err());
    }
}

#[cfg(feature = "bytes")]
mod bytes {
    use adamant_slice::Slice;
    use bytes::Bytes;

    #[test]
    fn both_ways_keep_the_memory() {
        let bytes = Bytes::from((0..100).collect::<Vec<u8>>());
        let slice = Slice::from(bytes.slice(10..60));
        assert_eq!(slice.as_ptr(), bytes[10..].as_ptr());
        let back = Bytes::from(slice.slice(5..45));
        assert_eq!(back.as_ptr(), bytes[15..].as_ptr());
        drop((bytes, slice));
        assert_eq!(back[..], (15..55).collect::<Vec<u8>>());
        for short in [&b""[..], b"short", &[3; 20]] {
            assert_eq!(Slice::from(Bytes::copy_from_slice(short)), short);
            assert_eq!(Bytes::from(Slice::new(short))[..], *short);
        }
    }
}

#[cfg(feature = "arbitrary")]
mod arbitrary {
    use adamant_slice::{Slice, Text};
    use arbitrary::{Arbitrary, Unstructured};

    #[test]
    fn a_fuzzers_bytes_become_slices() {
        let input: Vec<u8> = (0..200).collect();
        let slice = Slice::arbitrary_take_rest(Unstructured::new(&input)).unwrap();
        assert_eq!(slice, input);
        let mut input = Unstructured::new(&input);
        let slices: Vec<Slice> = input.arbitrary().unwrap();
        let text: Text = Unstructured::new(b"abc\xFF").arbitrary().unwrap();
        assert!(slices.iter().all(|slice| slice.len() <= 200));
        assert!("abc".starts_with(text.as_str()));
    }
}
