//! What the paper claims of named figures (see [`runs`](super::runs)).

use crate::judge::{Claim, Figures, Rule, claim, fitted};

macro_rules! figure {
    ($name:literal) => {
        |f: &Figures| f.get($name).copied()
    };
}

macro_rules! over {
    ($one:literal, $other:literal) => {
        |f: &Figures| Some(f.get($one)? / f.get($other)?)
    };
}

pub fn claims() -> Vec<Claim> {
    let mut all = input();
    all.extend(sets());
    all.extend(instant_hardware());
    all.extend(ratios());
    all
}

/// What the calibration files take from the paper.
fn input() -> Vec<Claim> {
    use Rule::Near;
    vec![
        fitted(
            "entry, i5 native",
            "until the CPU is off, ms",
            Near(12.5),
            figure!("i5/offline/native/1/switched_ms"),
        ),
        fitted(
            "entry, i5 Bolt",
            "until the CPU is off, ms",
            Near(0.45),
            figure!("i5/offline/bolt/1/switched_ms"),
        ),
        fitted(
            "exit, i5 native",
            "until the CPU runs a thread, ms",
            Near(13.8),
            figure!("i5/online/native/1/switched_ms"),
        ),
        fitted(
            "exit, i5 Bolt",
            "until the CPU runs a thread, ms",
            Near(10.27),
            figure!("i5/online/bolt/1/switched_ms"),
        ),
        fitted(
            "entry, Exynos native",
            "until the CPU is off, ms",
            Near(6.7),
            figure!("exynos/offline/native/1/switched_ms"),
        ),
        fitted(
            "entry, Exynos Bolt",
            "until the CPU is off, ms",
            Near(0.38),
            figure!("exynos/offline/bolt/1/switched_ms"),
        ),
        fitted(
            "exit, Exynos native",
            "until the CPU runs a thread, ms",
            Near(12.0),
            figure!("exynos/online/native/1/switched_ms"),
        ),
        fitted(
            "exit, Exynos Bolt",
            "until the CPU runs a thread, ms",
            Near(0.22),
            figure!("exynos/online/bolt/1/switched_ms"),
        ),
        fitted("cluster, two online", "all sleep, mW", Near(97.0), figure!("cluster/2/mw")),
        fitted("cluster, one online", "all sleep, mW", Near(55.0), figure!("cluster/1/mw")),
    ]
}

/// Three CPUs of the i5.
fn sets() -> Vec<Claim> {
    use Rule::{AtMost, Near};
    vec![
        claim("three offline, native", "ms", Near(39.2), figure!("i5/offline/native/3/ms")),
        claim("three offline, Bolt one by one", "ms", Near(1.6), figure!("i5/offline/bolt/3/ms")),
        claim("three offline, Bolt at once", "ms", Near(0.58), figure!("i5/offline/set/3/ms")),
        claim("three online, native", "ms", Near(43.1), figure!("i5/online/native/3/ms")),
        claim("three online, Bolt one by one", "ms", Near(31.2), figure!("i5/online/bolt/3/ms")),
        claim("three online, Bolt at once", "ms", Near(10.84), figure!("i5/online/set/3/ms")),
        claim(
            "at once, offline",
            "three at once take less than half of one by one",
            AtMost(0.5),
            over!("i5/offline/set/3/ms", "i5/offline/bolt/3/ms"),
        ),
        claim(
            "at once, online",
            "three at once take less than half of one by one",
            AtMost(0.5),
            over!("i5/online/set/3/ms", "i5/online/bolt/3/ms"),
        ),
    ]
}

/// Processors that start at once.
fn instant_hardware() -> Vec<Claim> {
    use Rule::{AtLeast, Near};
    vec![
        claim("no wait, native", "one online, ms", Near(4.0), figure!("instant/online/native/1/ms")),
        claim("no wait, Bolt", "one online, ms", Near(0.38), figure!("instant/online/bolt/1/ms")),
        claim("no wait, three native", "ms", Near(13.1), figure!("instant/online/native/3/ms")),
        claim("no wait, three at once", "ms", Near(0.71), figure!("instant/online/set/3/ms")),
        claim(
            "no wait, speedup",
            "of one online",
            Near(10.5),
            over!("instant/online/native/1/ms", "instant/online/bolt/1/ms"),
        ),
        claim(
            "no wait, speedup of three",
            "three online",
            Near(18.0),
            over!("instant/online/native/3/ms", "instant/online/set/3/ms"),
        ),
        claim(
            "no wait, more gain at once",
            "a set gains more over native than one CPU does",
            AtLeast(1.0),
            |f| {
                let gain = |cpus: u32, way: &str| {
                    let get = |way: &str| f.get(&format!("instant/online/{way}/{cpus}/ms"));
                    Some(get("native")? / get(way)?)
                };
                Some(gain(3, "set")? / gain(1, "bolt")?)
            },
        ),
    ]
}

fn ratios() -> Vec<Claim> {
    use Rule::{AtLeast, AtMost, Near};
    vec![
        claim(
            "abstract, offline",
            "over 20 times as fast, end to end",
            AtLeast(20.0),
            over!("i5/offline/native/1/ms", "i5/offline/bolt/1/ms"),
        ),
        claim(
            "abstract, online x86",
            "end to end",
            Near(1.3),
            over!("i5/online/native/1/ms", "i5/online/bolt/1/ms"),
        ),
        claim(
            "abstract, online ARM",
            "end to end",
            Near(21.0),
            over!("exynos/online/native/1/ms", "exynos/online/bolt/1/ms"),
        ),
        claim(
            "section 1, three offline",
            "up to 67 times as fast",
            Near(67.0),
            over!("i5/offline/native/3/ms", "i5/offline/set/3/ms"),
        ),
        claim(
            "section 1, three online",
            "4 times as fast",
            Near(4.0),
            over!("i5/online/native/3/ms", "i5/online/set/3/ms"),
        ),
        claim(
            "section 4, hardware on x86",
            "most of Bolt's exit is the wait for the processor",
            AtLeast(0.5),
            |f| Some(1.0 - f.get("instant/online/bolt/1/ms")? / f.get("i5/online/bolt/1/ms")?),
        ),
        claim(
            "section 4, software in future",
            "without the wait, native takes most of its time for what Bolt leaves out",
            AtMost(0.5),
            over!("instant/online/bolt/1/ms", "instant/online/native/1/ms"),
        ),
    ]
}

#[cfg(test)]
mod tests;
