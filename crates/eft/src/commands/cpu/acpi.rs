//! `eft cpu acpi`: what the ACPI tables say about processors.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use eft_acpi::Processor;
use eft_host::sensors::acpi;

use super::{Context, columns, print};

#[derive(Args)]
pub struct AcpiArguments {
    /// Folder of tables (as acpidump -b or iasl write them); its `dynamic/` holds those that firmware loads
    #[arg(long, value_name = "DIR")]
    tables: Option<PathBuf>,
}

pub fn run(context: &Context, arguments: &AcpiArguments) -> Result<()> {
    let processors = match &arguments.tables {
        Some(dir) => acpi::read_dir(dir)?,
        None => acpi::read_machine(&context.host.tree)?,
    };
    if context.json {
        return context.print_json(&processors);
    }
    let mut text = String::new();
    for processor in &processors.processors {
        text += &describe(processor);
    }
    if processors.processors.is_empty() {
        text += "the tables declare no processor\n";
    }
    for problem in &processors.problems {
        text += &format!("not evaluated: {problem}\n");
    }
    if processors.hardware_writes_left_out > 0 {
        text += &format!("{} writes to hardware were left out\n", processors.hardware_writes_left_out);
    }
    print(&text)
}

fn describe(processor: &Processor) -> String {
    let id = |id: Option<u64>| id.map_or("-".into(), |id| id.to_string());
    let mut text = format!(
        "{}   ACPI id {}   hardware id {}\n",
        processor.path,
        id(processor.acpi_id),
        id(processor.hardware_id)
    );
    if let (Some(control), Some(status)) = (&processor.control, &processor.status) {
        text += &format!(
            "  _PCT: control in {} at {:#x}, status in {} at {:#x}\n",
            control.space_name(),
            control.address,
            status.space_name(),
            status.address
        );
    }
    if let Some(dependency) = &processor.dependency {
        text += &format!(
            "  _PSD: domain {} of {} processors, coordinated by {}\n",
            dependency.domain,
            dependency.processors,
            dependency.coordination_name()
        );
    }
    if let Some(first) = processor.first_usable {
        text += &format!("  _PPC: states from P{first} on may be used\n");
    }
    if processor.states.is_empty() {
        text += "  no P-states\n";
    } else {
        let mut rows = vec![
            "  STATE MHz mW LATENCY-US BUS-US CONTROL STATUS"
                .split_whitespace()
                .map(|word| format!("  {word}"))
                .collect(),
        ];
        rows.extend(processor.states.iter().enumerate().map(|(index, state)| {
            let decimal = |number: Option<u64>| number.map_or("?".into(), |number| number.to_string());
            let hexadecimal =
                |number: Option<u64>| number.map_or("?".into(), |number| format!("{number:#x}"));
            let cells = [
                format!("P{index}"),
                state.frequency_mhz.to_string(),
                decimal(state.power_mw),
                decimal(state.transition_latency_us),
                decimal(state.bus_master_latency_us),
                hexadecimal(state.control),
                hexadecimal(state.status),
            ];
            cells.into_iter().map(|cell| format!("  {cell}")).collect::<Vec<String>>()
        }));
        text += &columns(&rows);
    }
    if let Some(cause) = &processor.states_depend_on {
        let lengths: Vec<String> =
            processor.other_states.iter().map(|states| states.len().to_string()).collect();
        text += &format!("  the states depend on {cause}, which cannot be read");
        if !lengths.is_empty() {
            text += &format!(" (other lists: of {} states)", lengths.join(", "));
        }
        text += "\n";
    }
    for reason in &processor.not_evaluated {
        text += &format!("  not evaluated: {reason}\n");
    }
    text
}
