//! `eft pf`: the packet filter's rules and states, in pf.conf syntax.

use anyhow::{Context, Result};
use eft_linux::operator;
use serde_json::json;
use std::path::PathBuf;

#[derive(clap::Args, Debug)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["file", "show"])))]
pub struct PfArguments {
    #[command(flatten)]
    stack: super::Stack,
    /// Load rules from this file (`-` is standard input); an error changes nothing
    #[arg(short = 'f')]
    file: Option<PathBuf>,
    /// Show `rules` or `states`
    #[arg(short = 's', value_parser = ["rules", "states"])]
    show: Option<String>,
}

pub fn run(arguments: &PfArguments) -> Result<()> {
    let stack = &arguments.stack.name;
    if let Some(file) = &arguments.file {
        let rules = match file.to_str() {
            Some("-") => eft_host::named_file::text_from(std::io::stdin()),
            _ => eft_host::named_file::text(file),
        }
        .with_context(|| file.display().to_string())?;
        return operator::ask(stack, &json!({ "op": "pf-load", "rules": rules }))
            .map(drop)
            .with_context(|| file.display().to_string());
    }
    let what = arguments.show.as_deref().unwrap_or("rules");
    let (answer, _) = operator::ask(stack, &json!({ "op": "pf-show", "what": what }))?;
    let text = answer["text"].as_str().unwrap_or_default();
    if !text.is_empty() {
        println!("{}", text.trim_end());
    }
    Ok(())
}
