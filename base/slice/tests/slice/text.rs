//! Text is always UTF-8.

use std::collections::HashMap;

use adamant_slice::{Error, Slice, Text};

#[test]
fn text_is_what_the_string_was() {
    for string in ["", "short", "\u{e4}\u{20ac}", "a sentence that does not fit into twenty bytes"]
    {
        let text = Text::from(string);
        assert_eq!(text, string);
        assert_eq!(text.to_string(), string);
        assert_eq!(format!("{text:?}"), format!("{string:?}"));
        assert_eq!(Text::try_from(Slice::from(string)), Ok(text.clone()));
        assert_eq!(Text::from(String::from(string)), text);
        assert_eq!(String::from(text.clone()), string);
        let map = HashMap::from([(text, 1)]);
        assert_eq!(map.get(string), Some(&1));
    }
    const NAME: Text = Text::from_static("a name");
    assert_eq!(NAME.as_str(), "a name");
}

#[test]
fn other_bytes_are_refused_where_they_begin() {
    let error = Text::try_from(Slice::from(b"abc\xFFdef")).unwrap_err();
    assert_eq!(error, Error::NotUtf8 { valid_bytes: 3 });
    assert!(error.to_string().contains("byte 3"));
}

#[test]
fn parts_share_and_never_cut_a_character() {
    let text = Text::from("\u{20ac}uros and other currencies of the world");
    assert!(text.try_slice(1..).is_none());
    assert!(text.try_slice(..2).is_none());
    assert!(text.try_slice(..100).is_none());
    let part = text.try_slice(3..).unwrap();
    assert_eq!(part, "uros and other currencies of the world");
    assert_eq!(part.as_ptr(), text[3..].as_ptr());
}
