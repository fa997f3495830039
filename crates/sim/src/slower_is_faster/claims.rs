//! What the paper claims of named figures (see [`runs`](super::runs)).
//!
//! It knows figures by their names only, and shares no code with what made them.

use crate::judge::{Claim, Figures, Rule, claim, fitted};

/// Of a figure by its name.
macro_rules! figure {
    ($name:literal) => {
        |f: &Figures| f.get($name).copied()
    };
}

fn ratio(figures: &Figures, one: &str, other: &str) -> Option<f64> {
    Some(figures.get(one)? / figures.get(other)?)
}

macro_rules! over {
    ($one:literal, $other:literal) => {
        |f: &Figures| ratio(f, $one, $other)
    };
}

/// The larger of ip's and the driver's utilisation.
fn others(figures: &Figures, set: &str) -> Option<f64> {
    Some(figures.get(&format!("c1/{set}/ip"))?.max(*figures.get(&format!("c1/{set}/driver"))?))
}

/// Resources that are used, busy share of each core's clock over three cores at 1600 MHz.
fn used(figures: &Figures, name: &str, tcp: f64, others: f64) -> Option<f64> {
    let of = |server: &str| figures.get(&format!("{name}/{server}")).copied();
    Some((of("tcp")? * tcp + (of("ip")? + of("driver")?) * others) / 4800.0)
}

pub fn claims() -> Vec<Claim> {
    let mut all = table_2();
    all.extend(throttled());
    all.extend(clusters());
    all.extend(threads());
    all.extend(single_core());
    all
}

fn table_2() -> Vec<Claim> {
    use Rule::{AtLeast, AtMost, Near};
    vec![
        fitted("table 2, 2267", "all cores at 2267 MHz, Mb/s", Near(8641.0), figure!("c1/2267/2267/mbps")),
        claim("table 2, 1867", "all cores at 1867 MHz, Mb/s", Near(8152.0), figure!("c1/1867/1867/mbps")),
        fitted("table 2, 1600", "all cores at 1600 MHz, Mb/s", Near(7840.0), figure!("c1/1600/1600/mbps")),
        fitted("table 2, 2267 watts", "of a chip, W (input)", Near(80.0), figure!("chip/2267/watts")),
        claim("table 2, 1867 watts", "of a chip, W", Near(48.0), figure!("chip/1867/watts")),
        fitted("table 2, 1600 watts", "of a chip, W (input)", Near(34.0), figure!("chip/1600/watts")),
        fitted("section 4.2, tcp", "tcp's core at 1600 MHz, %", Near(70.0), figure!("c1/1600/1600/tcp")),
        claim("section 4.2, ip", "ip's core below 40%", AtMost(40.0), figure!("c1/1600/1600/ip")),
        claim("section 4.2, driver", "driver's core below 40%", AtMost(40.0), figure!("c1/1600/1600/driver")),
        claim(
            "section 4.2, less than the clock",
            "rate falls less than the clock, 1600 to 2267",
            AtLeast(0.75),
            over!("c1/1600/1600/mbps", "c1/2267/2267/mbps"),
        ),
        claim("table 1, 4", "Phi cores beside 4 i7 cores", Near(44.0), figure!("die/4/cores")),
        claim("table 1, 8", "Phi cores beside 8 i7 cores", Near(27.0), figure!("die/8/cores")),
        claim("table 1, 12", "Phi cores beside 12 i7 cores", Near(10.0), figure!("die/12/cores")),
    ]
}

fn throttled() -> Vec<Claim> {
    use Rule::{AtLeast, Near};
    vec![
        claim("figure 2, 200", "three cores at 200 MHz, Mb/s", Near(1800.0), figure!("c1/200/200/mbps")),
        claim(
            "figure 2, half",
            "1200 and 600 MHz, half of the resources, Mb/s",
            Near(7900.0),
            figure!("c1/1200/600/mbps"),
        ),
        claim(
            "figure 2, half beats all",
            "half of the resources beats all at 1600 MHz",
            AtLeast(1.0),
            over!("c1/1200/600/mbps", "c1/1600/1600/mbps"),
        ),
        claim(
            "figure 2, best",
            "tcp at 1600, others at 600 MHz, Mb/s",
            Near(9100.0),
            figure!("c1/1600/600/mbps"),
        ),
        claim(
            "figure 2, best beats 1600",
            "tcp at 1600, others at 600 beats all at 1600",
            AtLeast(1.001),
            over!("c1/1600/600/mbps", "c1/1600/1600/mbps"),
        ),
        claim(
            "figure 2, best beats 2267",
            "tcp at 1600, others at 600 beats all at 2267",
            AtLeast(1.001),
            over!("c1/1600/600/mbps", "c1/2267/2267/mbps"),
        ),
    ]
}

fn clusters() -> Vec<Claim> {
    use Rule::{AtLeast, Between};
    const FULL: f64 = 90.0;
    vec![
        claim(
            "section 4.3, to 600",
            "the search leaves the others at 200 MHz until tcp has 600",
            Between(200.0, 200.0),
            figure!("search/600/others"),
        ),
        claim(
            "section 4.3, 1000",
            "the search has the others at 400 MHz for tcp at 1000",
            Between(400.0, 400.0),
            figure!("search/1000/others"),
        ),
        claim(
            "section 4.3, 1200",
            "the search has the others at 600 MHz for tcp at 1200",
            Between(600.0, 600.0),
            figure!("search/1200/others"),
        ),
        claim(
            "section 4.3, 1600",
            "the search ends with the others at 600 MHz",
            Between(600.0, 600.0),
            figure!("search/1600/others"),
        ),
        claim(
            "figure 3, rise",
            "in the first cluster the others' utilisation rises, points",
            AtLeast(5.0),
            |f| Some(others(f, "600/200")? - others(f, "200/200")?),
        ),
        claim("figure 3, near 100%", "in its third set the others are near 100%", AtLeast(FULL), |f| {
            others(f, "600/200")
        }),
        claim("figure 3, exceeds", "there they exceed tcp", AtLeast(1.0), |f| {
            Some(others(f, "600/200")? / f.get("c1/600/200/tcp")?)
        }),
        claim(
            "figure 3, second cluster",
            "the pattern repeats: the others rise, 800 to 1000 MHz, points",
            AtLeast(0.0),
            |f| Some(others(f, "1000/400")? - others(f, "800/400")?),
        ),
        claim(
            "figure 3, third cluster",
            "the pattern repeats: the others rise, 1200 to 1600 MHz, points",
            AtLeast(0.0),
            |f| Some(others(f, "1600/600")? - others(f, "1200/600")?),
        ),
        claim("figure 3, all busy", "with all at 200 MHz tcp is busier than the others", AtLeast(1.0), |f| {
            Some(f.get("c1/200/200/tcp")? / others(f, "200/200")?)
        }),
        claim(
            "section 4.3, copying",
            "60 to 70% of tcp's time is copying",
            Between(60.0, 70.0),
            figure!("c1/1600/600/copying"),
        ),
    ]
}

fn threads() -> Vec<Claim> {
    use Rule::{AtLeast, AtMost, Near};
    vec![
        claim(
            "figure 5, 200",
            "two cores at 200 MHz, ip and driver as threads of one, Mb/s",
            Near(1400.0),
            figure!("c2/200/200/mbps"),
        ),
        claim(
            "figure 5, 77%",
            "that to three cores",
            Near(0.77),
            over!("c2/200/200/mbps", "c1/200/200/mbps"),
        ),
        claim(
            "figure 5, more than its resources",
            "it is more than two thirds",
            AtLeast(0.667),
            over!("c2/200/200/mbps", "c1/200/200/mbps"),
        ),
        claim(
            "figure 5, 400",
            "threads at 400 beat cores at 200, tcp at 400",
            AtLeast(1.0),
            over!("c2/400/400/mbps", "c1/400/200/mbps"),
        ),
        claim(
            "figure 5, 600",
            "threads at 400 beat cores at 200, tcp at 600",
            AtLeast(1.0),
            over!("c2/600/400/mbps", "c1/600/200/mbps"),
        ),
        claim(
            "figure 5, 1000",
            "threads at 800 beat cores at 400, tcp at 1000",
            AtLeast(1.0),
            over!("c2/1000/800/mbps", "c1/1000/400/mbps"),
        ),
        claim("figure 5, utilisation at 600", "and use less, to 3 cores at 1600 MHz", AtMost(1.0), |f| {
            Some(threads_used(f, "c2/600/400", 600.0, 400.0)? / used(f, "c1/600/200", 600.0, 200.0)?)
        }),
        claim("figure 5, bursts", "the gain is smaller at high rates", AtMost(0.0), |f| {
            Some(
                ratio(f, "c2/1600/1200/mbps", "c1/1600/600/mbps")?
                    - ratio(f, "c2/600/400/mbps", "c1/600/200/mbps")?,
            )
        }),
    ]
}

/// As [`used`], with ip and driver on one core, which is as busy as the busier thread.
fn threads_used(figures: &Figures, name: &str, tcp: f64, shared: f64) -> Option<f64> {
    let of = |server: &str| figures.get(&format!("{name}/{server}")).copied();
    Some((of("tcp")? * tcp + of("ip")?.max(of("driver")?) * shared) / 4800.0)
}

fn single_core() -> Vec<Claim> {
    use Rule::{AtMost, Near};
    vec![
        claim(
            "section 4.5, 2267",
            "the stack on one core at 2267 MHz, Mb/s",
            Near(4300.0),
            figure!("one/2267/mbps"),
        ),
        claim(
            "section 4.5, 1600",
            "the stack on one core at 1600 MHz, Mb/s",
            Near(3400.0),
            figure!("one/1600/mbps"),
        ),
        claim(
            "section 4.5, 200",
            "the stack on one core at 200 MHz, Mb/s",
            Near(400.0),
            figure!("one/200/mbps"),
        ),
        claim(
            "section 4.5, like 600",
            "one core at 2267 is like tcp at 600 and others at 200",
            Near(1.0),
            over!("one/2267/mbps", "c1/600/200/mbps"),
        ),
        claim(
            "section 4.5, less",
            "one core is worse than three",
            AtMost(0.9),
            over!("one/1600/mbps", "c1/1600/1600/mbps"),
        ),
    ]
}

#[cfg(test)]
mod tests;
