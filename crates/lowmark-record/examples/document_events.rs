//! Prints `docs/events.md` from the declarations.

fn main() {
    print!("{}", lowmark_record::event::documentation());
}
