#![no_main]
//! The head of an answer of any bytes: it is refused, or what is passed on of it is read again with the same body. How the bytes are split changes
//! nothing.

use evenkeel_wire::http1::{
    Asked, FieldSlots, Limits, Parsed, Persistence, ResponseEdits, ResponseHead, Upgrade, Version,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &[u8])| {
    let (choice, bytes) = input;
    let asked = match choice % 4 {
        0 => Asked::Head,
        1 => Asked::Connect,
        _ => Asked::Other,
    };
    let limits = Limits::default();
    let mut slots = FieldSlots::new();
    let whole = ResponseHead::parse(bytes, asked, &limits, &mut slots);
    let mut slots = FieldSlots::new();
    let part = &bytes[..bytes.len().min(choice.into())];
    match ResponseHead::parse(part, asked, &limits, &mut slots) {
        Parsed::Incomplete => {}
        part => assert!(part == whole, "a part is read as something else"),
    }
    if let Parsed::Complete(head, _) = whole {
        check_written(&head, asked);
    }
});

fn check_written(head: &ResponseHead<'_>, asked: Asked) {
    let edits = ResponseEdits {
        client: Version::Http11,
        persistence: Persistence::Close,
        framing: head.framing,
        upgrade: Upgrade::Forward,
        via: None,
        fields: &[],
    };
    let mut out = Vec::new();
    head.write(&edits, &mut out);
    let limits = Limits {
        head_bytes: out.len(),
        fields: usize::MAX,
        ..Limits::default()
    };
    let mut slots = FieldSlots::new();
    match ResponseHead::parse(&out, asked, &limits, &mut slots) {
        Parsed::Complete(again, end) => {
            assert_eq!(end, out.len());
            assert_eq!(
                (again.status, again.reason, again.framing),
                (head.status, head.reason, head.framing)
            );
        }
        other => panic!("what is written is not read: {other:?}"),
    }
}
