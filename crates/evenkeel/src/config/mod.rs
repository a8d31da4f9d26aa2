//! The configuration: from the text that a user writes to the settings that the program runs.
