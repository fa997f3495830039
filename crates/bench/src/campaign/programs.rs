//! Servers and clients of others in the mixed load.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::content::{self, CHUNK};
use super::part::Part;
use crate::stack::STACK;

/// A program that ends with the value.
pub struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        // SAFETY: a signal to a child that we have not reaped.
        unsafe { libc::kill(self.0.id() as i32, libc::SIGTERM) };
        let _ = self.0.wait();
    }
}

/// A server on the stack, if it is installed.
pub fn nginx(stack: &str, folder: &Path) -> Result<Option<Daemon>> {
    if !is_installed("nginx") || !is_installed("curl") {
        eprintln!("campaign: without nginx and curl, which are not installed");
        return Ok(None);
    }
    let f = folder.display();
    let mut file = vec![0; CHUNK * 64];
    file.chunks_mut(CHUNK).enumerate().for_each(|(i, chunk)| content::fill(chunk, (i * CHUNK) as u64));
    let config = format!(
        "user root; worker_processes 1; daemon off; pid {f}/nginx.pid; error_log {f}/error.log;\n\
         events {{ worker_connections 256; }}\n\
         http {{ access_log off; sendfile on; client_body_temp_path {f}/body; proxy_temp_path {f}/proxy;\n\
         fastcgi_temp_path {f}/fcgi; uwsgi_temp_path {f}/uwsgi; scgi_temp_path {f}/scgi;\n\
         server {{ listen {STACK}:8080; root {f}; }} }}\n"
    );
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.join(name), bytes).with_context(|| format!("{f}/{name}"))
    };
    write("file", &file)?;
    write("nginx.conf", config.as_bytes())?;
    serve(stack, &["nginx", "-c", &format!("{f}/nginx.conf")], 8080).map(Some)
}

/// A server on the stack, if it is installed.
pub fn redis_server(stack: &str, folder: &Path) -> Result<Option<Daemon>> {
    if !is_installed("redis-server") || !is_installed("redis-cli") {
        eprintln!("campaign: without redis, which is not installed");
        return Ok(None);
    }
    let folder = folder.to_string_lossy();
    let server = [
        "redis-server",
        "--bind",
        STACK,
        "--port",
        "6400",
        "--save",
        "",
        "--dir",
        &folder,
        "--protected-mode",
        "no",
    ];
    serve(stack, &server, 6400).map(Some)
}

fn serve(stack: &str, command: &[&str], port: u16) -> Result<Daemon> {
    let mut run = Command::new(crate::stack::exe()?);
    run.args(["run", "--name", stack, "--"]).args(command).stdout(Stdio::null());
    let child = run.spawn().with_context(|| command[0].to_string())?;
    let daemon = Daemon(child);
    let until = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect((STACK, port)).is_err() {
        if Instant::now() > until {
            bail!("{} does not listen", command[0]);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(daemon)
}

pub fn is_installed(program: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let sbin = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&folders).chain(sbin).any(|folder| folder.join(program).is_file())
}

/// Fetches nginx's file.
pub fn curl(part: &Part) {
    let begin = Instant::now();
    let address = format!("http://{STACK}:8080/file");
    let output = match Command::new("curl").args(["-sSf", "--max-time", "30", &address]).output() {
        Ok(output) => output,
        Err(why) => return part.lost(begin, why),
    };
    let wrong = output
        .stdout
        .chunks(CHUNK)
        .enumerate()
        .map(|(i, chunk)| content::damaged(chunk, (i * CHUNK) as u64))
        .sum();
    part.damaged.fetch_add(wrong, Relaxed);
    match output.status.success() && output.stdout.len() == CHUNK * 64 {
        true => drop(part.progress.fetch_add(1, Relaxed)),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            part.lost(begin, format_args!("{} bytes, {}", output.stdout.len(), said.trim()))
        }
    }
    std::thread::sleep(Duration::from_millis(20));
}

/// Increments a counter in redis and checks that each answer is one more than the last. redis-cli does not report
/// reconnections, so the server is asked.
pub fn redis(part: &Part) {
    let begin = Instant::now();
    let command = ["-h", STACK, "-p", "6400"];
    let child = Command::new("redis-cli").args(command).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(why) => return part.lost(begin, why),
    };
    let Some((mut input, output)) = child.stdin.take().zip(child.stdout.take()) else { return };
    let mut lines = BufReader::new(output).lines();
    let mut say = |text: &str| -> Option<String> {
        writeln!(input, "{text}").ok()?;
        lines.next()?.ok()
    };
    let name = say("CLIENT ID");
    let mut last: Option<u64> = None;
    while part.goes_on() {
        let (count, id) = (say("INCR count").and_then(|line| line.parse().ok()), say("CLIENT ID"));
        if count.is_none() || id != name {
            part.lost(begin, format_args!("client {name:?} became {id:?}"));
            break;
        }
        part.damaged.fetch_add(last.is_some_and(|last| count != Some(last + 1)) as u64, Relaxed);
        last = count;
        part.progress.fetch_add(1, Relaxed);
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = child.kill();
    let _ = child.wait();
}
