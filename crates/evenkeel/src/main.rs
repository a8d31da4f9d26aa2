//! evenkeel, the program. Everything is in the library, where tests can reach it.
#![forbid(unsafe_code)]

use evenkeel::exit::Exit;

fn main() -> Exit {
    evenkeel::cli::main()
}
