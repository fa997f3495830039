//! The commands, one folder or file each: arguments in, text or JSON out.

pub mod capture;
pub mod cpu;
pub mod kill;
pub mod pf;
pub mod place;
pub mod profile;
pub mod ps;
pub mod replay;
pub mod run;
pub mod sched;
pub mod serve;
pub mod ss;
pub mod stat;
pub mod top;
pub mod up;

/// Which stack is meant.
#[derive(clap::Args, Debug)]
pub struct Stack {
    /// The stack's name
    #[arg(long, default_value = "eft")]
    pub name: String,
}

/// Prints rows as columns, each as wide as its widest cell.
pub fn print_table(header: &[&str], rows: &[Vec<String>]) {
    let widths: Vec<usize> = (0..header.len())
        .map(|i| rows.iter().map(|r| r[i].chars().count()).chain([header[i].len()]).max().unwrap_or(0))
        .collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let text: Vec<String> = cells.zip(&widths).map(|(c, w)| format!("{c:<w$}")).collect();
        println!("{}", text.join("  ").trim_end());
    };
    line(&mut header.iter().copied());
    for row in rows {
        line(&mut row.iter().map(String::as_str));
    }
}
