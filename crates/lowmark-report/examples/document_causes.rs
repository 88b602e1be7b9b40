//! Prints `docs/causes.md` from the declarations.

fn main() {
    print!("{}", lowmark_report::why::documentation());
}
