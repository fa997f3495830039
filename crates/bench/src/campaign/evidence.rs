//! What the stack, the kernel and the programs show of connections that go no further, before anything is replaced.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::stack::{STACK, exe};

/// Writes it to a file of `folder`.
pub fn keep(stack: &str, folder: &Path, name: &str) -> Result<()> {
    let own = exe()?.to_string_lossy().into_owned();
    let me = std::process::id().to_string();
    let commands: [&[&str]; 6] = [
        &[&own, "ss", "--name", stack, "--info"],
        &[&own, "ss", "--name", stack, "--json"],
        &[&own, "stat", "--name", stack],
        &[&own, "ps", "--name", stack],
        &["ss", "-tiemon", "dst", STACK],
        &["ps", "--ppid", &me, "-o", "pid,stat,wchan:20,etime,cputimes,args"],
    ];
    let text: String = commands.iter().map(|command| output(command)).collect();
    let file = folder.join(format!("{name}.txt"));
    std::fs::write(&file, text).with_context(|| file.display().to_string())
}

/// What a command prints, or why it cannot.
fn output(command: &[&str]) -> String {
    let printed = match Command::new(command[0]).args(&command[1..]).output() {
        Ok(output) => {
            let (out, err) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            format!("{out}{err}")
        }
        Err(why) => format!("{why}\n"),
    };
    format!("$ {}\n{printed}\n", command.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_asked_is_told() {
        assert_eq!(output(&["echo", "here"]), "$ echo here\nhere\n\n");
        assert!(output(&["/there/is/no/such/program"]).contains("No such file"));
        let folder = tempfile::tempdir().unwrap();
        keep("no-such-stack", folder.path(), "stuck-7").unwrap();
        let text = std::fs::read_to_string(folder.path().join("stuck-7.txt")).unwrap();
        assert_eq!(text.lines().filter(|line| line.starts_with("$ ")).count(), 6);
    }
}
