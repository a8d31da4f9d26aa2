//! Text in aligned columns. What is in them is not decided here.

/// Two spaces tell columns apart even where a cell holds single ones.
const GAP: &str = "  ";

/// On which side of its column a cell stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Rows of cells under headings.
#[derive(Debug)]
pub(crate) struct Table<const COLUMNS: usize> {
    align: [Align; COLUMNS],
    rows: Vec<[String; COLUMNS]>,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    /// A table with its headings.
    pub(crate) fn new(columns: [(&str, Align); COLUMNS]) -> Self {
        Self {
            align: columns.map(|(_, align)| align),
            rows: vec![columns.map(|(heading, _)| heading.to_owned())],
        }
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: [String; COLUMNS]) {
        self.rows.push(row);
    }

    /// The text, each line after `indent`, without white space at the ends of lines.
    pub(crate) fn render(&self, indent: &str) -> String {
        let widths = self.widths();
        let mut text = String::new();
        for row in &self.rows {
            let cells = row.iter().zip(self.align).zip(widths);
            let cells: Vec<String> = cells
                .map(|((cell, align), width)| padded(cell, align, width))
                .collect();
            text.push_str(indent);
            text.push_str(cells.join(GAP).trim_end());
            text.push('\n');
        }
        text
    }

    fn widths(&self) -> [usize; COLUMNS] {
        let mut widths = [0; COLUMNS];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        widths
    }
}

fn padded(cell: &str, align: Align, width: usize) -> String {
    match align {
        Align::Left => format!("{cell:<width$}"),
        Align::Right => format!("{cell:>width$}"),
    }
}

/// A name for a terminal: control characters, which could move the cursor or change colours, are escaped.
pub(crate) fn printable(name: &str) -> String {
    let escape = |c: char| {
        if c.is_control() {
            c.escape_default().to_string()
        } else {
            c.to_string()
        }
    };
    name.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words stand left, numbers right, and no line ends in spaces.
    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new([
            ("name", Align::Left),
            ("count", Align::Right),
            ("note", Align::Left),
        ]);
        table.push(["größe", "7", ""].map(str::to_owned));
        table.push(["b", "12345678", "late"].map(str::to_owned));

        assert_eq!(
            table.render("  "),
            "  name      count  note\n\
             \x20 größe         7\n\
             \x20 b      12345678  late\n"
        );
    }

    /// A name cannot send commands to the terminal that shows it.
    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("a\u{1b}[31m\n"), "a\\u{1b}[31m\\n");
    }
}
