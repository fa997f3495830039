//! What the paper claims of named figures (see [`runs`](super::runs)). Its text has shapes and no numbers.
//!
//! It knows figures by their names only, and shares no code with what made them.

use crate::judge::{Claim, Figures, Rule, claim};

/// Clocks of throttled cores in the figures, MHz.
const SPEEDS: [u32; 6] = [200, 400, 600, 800, 1200, 1600];

pub fn claims() -> Vec<Claim> {
    let mut all = figure_2();
    all.extend(small());
    all.extend(middle());
    all.extend(large());
    all.extend(scaled_together());
    all
}

fn rate(figures: &Figures, file: u32, tcp_ip: u32, driver: u32) -> Option<f64> {
    figures.get(&format!("{file}/{tcp_ip}/{driver}/rate")).copied()
}

/// The largest of a setting's figures.
fn most(figures: &Figures, settings: impl Iterator<Item = (u32, u32)>, file: u32, what: &str) -> Option<f64> {
    let of = |(tcp_ip, driver)| figures.get(&format!("{file}/{tcp_ip}/{driver}/{what}")).copied();
    settings.map(of).collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
}

fn all_settings() -> impl Iterator<Item = (u32, u32)> {
    SPEEDS.into_iter().flat_map(|tcp_ip| SPEEDS.into_iter().map(move |driver| (tcp_ip, driver)))
}

/// NewtOS over Linux with so many connections.
fn beside_linux(figures: &Figures, connections: u32) -> Option<f64> {
    let of = |stack: &str| figures.get(&format!("figure-2/{stack}/{connections}/rate")).copied();
    Some(of("stack")? / of("linux")?)
}

fn figure_2() -> Vec<Claim> {
    use Rule::{AtLeast, AtMost};
    vec![
        claim(
            "figure 2, latency",
            "with one connection, where latency matters, the stack is behind Linux",
            AtMost(0.97),
            |f| beside_linux(f, 1),
        ),
        claim("figure 2, approaches", "with eight it is nearer, over with one", AtLeast(1.05), |f| {
            Some(beside_linux(f, 8)? / beside_linux(f, 1)?)
        }),
        claim("figure 2, throughput", "with many connections it outperforms Linux", AtLeast(1.03), |f| {
            beside_linux(f, 128)
        }),
    ]
}

fn small() -> Vec<Claim> {
    use Rule::{AtLeast, AtMost, Between};
    const FILE: u32 = 10;
    vec![
        claim("10 B, driver matters", "the driver's speed matters, best over worst", AtLeast(1.05), |f| {
            let of = |driver| rate(f, FILE, 1600, driver);
            let all = SPEEDS.map(of).into_iter().collect::<Option<Vec<f64>>>()?;
            Some(all.iter().copied().reduce(f64::max)? / all.iter().copied().reduce(f64::min)?)
        }),
        claim("10 B, driver 200", "a driver at 200 MHz does as well as at 1600", Between(0.95, 1.05), |f| {
            Some(rate(f, FILE, 1600, 200)? / rate(f, FILE, 1600, 1600)?)
        }),
        claim("10 B, 2267", "all at 2267 MHz does worse than the best throttled", AtMost(0.98), |f| {
            Some(rate(f, FILE, 2267, 2267)? / most(f, all_settings(), FILE, "rate")?)
        }),
        claim("10 B, enough", "beyond some speed nothing is gained, 1600 over 1200", AtMost(1.03), |f| {
            Some(rate(f, FILE, 1600, 1600)? / rate(f, FILE, 1200, 1200)?)
        }),
        claim("10 B, program", "there the program is close to being overloaded, %", AtLeast(85.0), |f| {
            f.get("10/1600/1600/program").copied()
        }),
    ]
}

fn middle() -> Vec<Claim> {
    use Rule::{AtLeast, AtMost, Between};
    const FILE: u32 = 100_000;
    vec![
        claim("100 kB, 200 to 400", "rate follows tcp's and ip's speed", Between(1.7, 2.1), |f| {
            Some(rate(f, FILE, 400, 1600)? / rate(f, FILE, 200, 1600)?)
        }),
        claim("100 kB, 400 to 800", "rate follows tcp's and ip's speed", Between(1.6, 2.1), |f| {
            Some(rate(f, FILE, 800, 1600)? / rate(f, FILE, 400, 1600)?)
        }),
        claim(
            "100 kB, driver",
            "the driver's speed has no effect, 200 over 1600, the least of all",
            AtLeast(0.95),
            |f| {
                let of = |tcp_ip| Some(rate(f, FILE, tcp_ip, 200)? / rate(f, FILE, tcp_ip, 1600)?);
                SPEEDS.map(of).into_iter().collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::min)
            },
        ),
        claim("100 kB, enough", "beyond some speed nothing is gained, 1600 over 1200", AtMost(1.03), |f| {
            Some(rate(f, FILE, 1600, 1600)? / rate(f, FILE, 1200, 1200)?)
        }),
        claim("100 kB, program", "there the program is close to being overloaded, %", AtLeast(85.0), |f| {
            f.get("100000/1600/1600/program").copied()
        }),
    ]
}

/// What tcp and ip at 1600 MHz have of their best speed's rate, for each speed of the driver.
fn fast_over_best(figures: &Figures, file: u32) -> Option<Vec<f64>> {
    let of = |driver| {
        let best = most(figures, SPEEDS.into_iter().map(|tcp_ip| (tcp_ip, driver)), file, "rate")?;
        Some(rate(figures, file, 1600, driver)? / best)
    };
    SPEEDS.map(of).into_iter().collect()
}

fn large() -> Vec<Claim> {
    use Rule::{AtLeast, AtMost};
    vec![
        claim(
            "1 MB, fast loses",
            "for some driver fast tcp and ip cores do worse than slower ones",
            AtMost(0.98),
            |f| fast_over_best(f, 1_000_000)?.into_iter().reduce(f64::min),
        ),
        claim("1 MB, depends", "and for another they do not", AtLeast(0.99), |f| {
            fast_over_best(f, 1_000_000)?.into_iter().reduce(f64::max)
        }),
        claim(
            "10 MB, fast loses",
            "for some driver fast tcp and ip cores do worse than slower ones",
            AtMost(0.98),
            |f| fast_over_best(f, 10_000_000)?.into_iter().reduce(f64::min),
        ),
        claim("10 MB, depends", "and for another they do not", AtLeast(0.99), |f| {
            fast_over_best(f, 10_000_000)?.into_iter().reduce(f64::max)
        }),
    ]
}

/// Where all cores are scaled together as long as the rate rises: there over the best of all settings.
fn together(figures: &Figures, file: u32, what: &str) -> Option<f64> {
    let mut at = SPEEDS[0];
    for speed in SPEEDS {
        if rate(figures, file, speed, speed)? < rate(figures, file, at, at)? {
            break;
        }
        at = speed;
    }
    let found = *figures.get(&format!("{file}/{at}/{at}/{what}"))?;
    Some(found / most(figures, all_settings(), file, what)?)
}

fn scaled_together() -> Vec<Claim> {
    use Rule::{AtLeast, AtMost};
    vec![
        claim("together, 10 B", "scaling all cores together finds the best throughput", AtLeast(0.98), |f| {
            together(f, 10, "rate")
        }),
        claim("together, 10 B energy", "but not the best energy", AtMost(0.95), |f| {
            together(f, 10, "per-joule")
        }),
        claim("together, 1 MB", "it does not find the best throughput", AtMost(0.98), |f| {
            together(f, 1_000_000, "rate")
        }),
        claim("together, 1 MB energy", "nor the best energy", AtMost(0.95), |f| {
            together(f, 1_000_000, "per-joule")
        }),
        claim("together, 10 MB", "it does not find the best throughput", AtMost(0.98), |f| {
            together(f, 10_000_000, "rate")
        }),
        claim("together, 10 MB energy", "nor the best energy", AtMost(0.95), |f| {
            together(f, 10_000_000, "per-joule")
        }),
    ]
}
