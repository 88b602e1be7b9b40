use super::*;

const ISOLATE: &str = "name: mm_vmscan_lru_isolate
ID: 602
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:int order;\toffset:12;\tsize:4;\tsigned:1;
\tfield:unsigned long nr;\toffset:16;\tsize:8;\tsigned:0;
\tfield:char comm[16];\toffset:24;\tsize:16;\tsigned:0;
\tfield:__data_loc char[] name;\toffset:40;\tsize:4;\tsigned:0;
\tfield:__rel_loc char[] other;\toffset:44;\tsize:4;\tsigned:0;
\tfield:struct folio * folio;\toffset:48;\tsize:8;\tsigned:0;

print fmt: \"order=%d __print_flags(REC->no, lru=%s\", REC->order, (REC->flags) ? \
__print_flags(REC->flags, \"|\", {( unsigned long)((( gfp_t)((((1UL))) << (10)))), \"A\\\"B\"}, \
{0x01u, \"ONE\" \"S\"}, {1 << UNKNOWN, \"WHO\"}) : \"NONE\", __print_symbolic(REC->lru & 7, {0, \"zero\"}, \
{1, \"one\"}, { 0, ((void *)0) }), __print_symbolic(3, {1, \"nothing\"}), __print_flags(REC->cut, \"|\", {1, \"a\"
";

#[test]
fn a_format_is_parsed_whole() {
    let format = Format::parse("vmscan", ISOLATE).expect("a format");
    assert_eq!(
        (format.name.as_str(), format.id),
        ("mm_vmscan_lru_isolate", 602)
    );
    assert_eq!((format.common.len(), format.fields.len()), (2, 6));
    let shape = |name| {
        format
            .field(name)
            .map(|field| (field.ctype.as_str(), field.shape))
    };
    assert_eq!(shape("order"), Some(("int", Shape::Scalar)));
    assert_eq!(shape("comm"), Some(("char[16]", Shape::Array)));
    assert_eq!(shape("name"), Some(("__data_loc char[]", Shape::DataLoc)));
    assert_eq!(shape("other"), Some(("__rel_loc char[]", Shape::RelLoc)));
    assert_eq!(shape("folio"), Some(("struct folio *", Shape::Scalar)));
    assert_eq!(shape("nothing"), None);
}

#[test]
fn fields_are_read_within_the_record() {
    let format = Format::parse("vmscan", ISOLATE).expect("a format");
    let mut data = vec![0; 56];
    data[12..16].copy_from_slice(&(-2i32).to_le_bytes());
    data[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
    data[24..30].copy_from_slice(b"abc\0xy");
    data[40..44].copy_from_slice(&(4 << 16 | 56u32).to_le_bytes());
    data[44..48].copy_from_slice(&(4 << 16 | 8u32).to_le_bytes());
    data.extend(b"def\0");
    let field = |name: &str| format.field(name).expect("a field");
    let endian = Endian::Little;
    assert_eq!(field("order").read(&data, endian), Some(-2));
    assert_eq!(field("order").read_u64(&data, endian), Some(-2i64 as u64));
    assert_eq!(field("nr").read_u64(&data, endian), Some(u64::MAX));
    assert_eq!(field("comm").read(&data, endian), None);
    assert_eq!(
        field("comm").read_str(&data, endian).as_deref(),
        Some("abc")
    );
    assert_eq!(
        field("name").read_str(&data, endian).as_deref(),
        Some("def")
    );
    assert_eq!(
        field("other").read_str(&data, endian).as_deref(),
        Some("def")
    );
    assert_eq!(field("name").read_str(&data[..59], endian), None);
    assert_eq!(field("nr").read(&data[..23], endian), None);
    assert_eq!(field("order").read_str(&data, endian), None);
    let far = Field {
        offset: u32::MAX,
        ..field("nr").clone()
    };
    assert_eq!(far.read(&data, endian), None);
}

#[test]
fn tables_are_found_and_unknown_values_kept() {
    let format = Format::parse("vmscan", ISOLATE).expect("a format");
    let names: Vec<_> = format.tables().map(|(field, _)| field).collect();
    assert_eq!(names, ["flags", "lru"]);
    let flags = format.flags("flags").expect("flags");
    assert_eq!(
        flags.known().collect::<Vec<_>>(),
        [(1024, "A\"B"), (1, "ONES")]
    );
    assert_eq!(
        flags.unresolved().collect::<Vec<_>>(),
        [("1 << UNKNOWN", "WHO")]
    );
    assert_eq!(flags.value_of("ONES"), Some(1));
    assert_eq!(flags.render(0), "NONE");
    assert_eq!(flags.render(1025), "A\"B|ONES");
    assert_eq!(flags.render(3), "ONES|0x2");
    let lru = format.flags("lru").expect("symbols");
    assert_eq!(lru.argument, "REC->lru & 7");
    assert_eq!(
        (lru.render(1), lru.render(9)),
        ("one".to_owned(), "0x9".to_owned())
    );
    assert!(format.flags("cut").is_none());
}

#[test]
fn errors_name_the_line() {
    let error = |text: &str| {
        Format::parse("any", text)
            .expect_err("no format")
            .to_string()
    };
    assert_eq!(error(""), "there is no line `name:`");
    assert_eq!(error("name: x\n"), "there is no line `ID:`");
    assert_eq!(
        error("name: x\nID: 70000\n"),
        "line 2: expected a number up to 65535 after `ID:`"
    );
    let text = "name: x\nID: 7\nformat:\n\tfield:int y;\toffset:0;\tsize:x;\n";
    assert_eq!(error(text), "line 4: expected `size:` with a number");
    assert!(error(&" ".repeat(TEXT_BYTES_MAX + 1)).contains("more than"));
}

#[test]
fn kernels_that_say_nothing_of_signs_are_read_by_type() {
    let text = "field:unsigned int x; offset:0; size:4;\nfield:long y; offset:8; size:8;";
    let fields = parse_fields(text).expect("fields");
    assert_eq!(
        fields.iter().map(|field| field.signed).collect::<Vec<_>>(),
        [false, true]
    );
}

/// Twice the text takes about twice the time: a table that does not end is not looked for again from
/// each of its parts.
#[test]
fn nested_calls_are_passed_once() {
    let print = "__print_flags(".repeat(60_000);
    let text = format!("name: x\nID: 1\nprint fmt: {print}");
    let format = Format::parse("any", &text).expect("a format");
    assert_eq!(format.tables().count(), 0);
}
