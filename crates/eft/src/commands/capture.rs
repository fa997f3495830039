//! `eft capture`: what crosses a device, as pcapng.

use anyhow::{Context, Result, bail};
use eft_linux::capture::{CaptureReader, PcapWriter};
use eft_linux::operator;
use serde_json::json;
use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[derive(clap::Args, Debug)]
pub struct CaptureArguments {
    #[command(flatten)]
    stack: super::Stack,
    /// Number of the device, in the order of `eft up`
    #[arg(short, long, default_value_t = 0)]
    interface: u32,
    /// File to write; `-` is standard output
    #[arg(short = 'w', long, default_value = "-")]
    write: PathBuf,
    /// Stop after this many frames
    #[arg(short, long)]
    count: Option<u64>,
    /// Stop after this many seconds
    #[arg(short, long)]
    seconds: Option<u64>,
}

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn stop(_: i32) {
    STOP.store(true, Ordering::Relaxed);
}

pub fn run(arguments: &CaptureArguments) -> Result<()> {
    if arguments.write.as_os_str() == "-" && std::io::stdout().is_terminal() {
        bail!(
            "a capture is binary, and standard output is a terminal: write to a file with -w FILE, or \
             pipe it into `tcpdump -nr -`"
        );
    }
    // SAFETY: the handler only stores to an atomic.
    unsafe {
        let handler = stop as extern "C" fn(i32) as libc::sighandler_t;
        libc::signal(libc::SIGINT, handler);
        libc::signal(libc::SIGTERM, handler);
    }
    let request = json!({ "op": "capture", "interface": arguments.interface });
    let (answer, fds) = operator::ask(&arguments.stack.name, &request)?;
    let fd = fds.first().context("the stack gave no capture ring")?;
    let mut reader = CaptureReader::new(fd)?;
    let out: Box<dyn Write> = match arguments.write.to_str() {
        Some("-") => Box::new(std::io::stdout()),
        _ => Box::new(File::create(&arguments.write).with_context(|| arguments.write.display().to_string())?),
    };
    let interface = answer["interface"].as_str().unwrap_or("eft");
    let mut writer = PcapWriter::new(BufWriter::new(out), interface)?;
    let end = arguments.seconds.map(|s| Instant::now() + Duration::from_secs(s));
    let (mut frames, mut lost) = (0, 0);
    eprintln!("capturing on {interface}; end with Ctrl-C");
    loop {
        while let Some(frame) = reader.take() {
            lost = frame.lost;
            writer.write(&frame)?;
            frames += 1;
            if arguments.count.is_some_and(|c| frames >= c) {
                STOP.store(true, Ordering::Relaxed);
                break;
            }
        }
        writer.flush()?;
        if STOP.load(Ordering::Relaxed) || end.is_some_and(|e| Instant::now() >= e) {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    eprintln!("{frames} frames captured, {lost} lost because the file could not be written fast enough");
    Ok(())
}
