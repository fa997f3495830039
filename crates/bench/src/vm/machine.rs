//! What a benchmark changes in the machine, and restores at its end: a CPU's speed, and priorities.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, anyhow, bail};
use eft_machine::{CpuId, CpuSet};

/// The slowed CPU, put back when this goes.
pub struct Slowed {
    pub dir: PathBuf,
}

impl Slowed {
    pub fn begin(cpus: &CpuSet, slow_cpu: CpuId, share: f64) -> Result<Self> {
        let dir = std::env::temp_dir().join(format!("eft-bench-vm-{}", std::process::id()));
        let slowed = Self { dir };
        let (cpus, cpu, share) = (cpus.to_string(), slow_cpu.to_string(), format!("{share}"));
        slowed.eft(&["--managed", &cpus, "speed", &cpu, &share, "--back-end", "emulated"])?;
        Ok(slowed)
    }

    fn eft(&self, arguments: &[&str]) -> Result<()> {
        let program = std::env::current_exe()?;
        let output = Command::new(program)
            .args(["cpu", "--state-dir"])
            .arg(self.dir.join("cpu"))
            .args(arguments)
            .output()
            .map_err(|error| anyhow!("'eft cpu' cannot be started ({error})"))?;
        if output.status.success() {
            return Ok(());
        }
        bail!(eft_base::text::one_line(String::from_utf8_lossy(&output.stderr).trim_start_matches("eft: ")))
    }
}

impl Drop for Slowed {
    fn drop(&mut self) {
        if let Err(reason) = self.eft(&["restore"]) {
            eprintln!("eft: the slowed CPU is not put back: {reason:#}");
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Where a session's weight against other sessions lies, if the kernel groups programs by session: niceness counts within
/// one only.
const AUTOGROUP: &str = "/proc/self/autogroup";

/// This program and its children before all others.
pub struct First {
    autogroup: Option<String>,
}

impl First {
    /// Also what keeps this from being so.
    pub fn begin() -> (Self, Option<String>) {
        let old = std::fs::read_to_string(AUTOGROUP).ok();
        let old = old.and_then(|text| Some(text.trim().rsplit_once("nice ")?.1.to_string()));
        let is_grouped = std::fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled")
            .is_ok_and(|text| text.trim() == "1");
        // SAFETY: plain call; 0 names this process, whose children inherit it.
        let is_nice = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) } == 0;
        let is_first = is_nice && (!is_grouped || std::fs::write(AUTOGROUP, "-20").is_ok());
        let note =
            (!is_first).then(|| "not privileged to go before other programs: expect noise".to_string());
        (Self { autogroup: old.filter(|_| is_grouped) }, note)
    }
}

impl Drop for First {
    fn drop(&mut self) {
        if let Some(old) = &self.autogroup {
            let _ = std::fs::write(AUTOGROUP, old);
        }
        // SAFETY: as above.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 0) };
    }
}
