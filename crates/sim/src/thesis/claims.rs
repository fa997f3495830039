//! What the thesis claims of named figures (see [`runs`](super::runs)).
//!
//! It knows figures by their names only, and shares no code with what made them.

use crate::judge::{Claim, Figures, Rule, claim};

const FULL: &str = "opteron/1900x1900x1900x1900";
const XEON: &str = "xeon/2267x2267x2267x2267x2267";
const SLOW: &str = "xeon/1600x1600x1600x2267x1600";

fn get(figures: &Figures, name: &str, what: &str) -> Option<f64> {
    figures.get(&format!("{name}/{what}")).copied()
}

fn over(figures: &Figures, one: &str, other: &str, what: &str) -> Option<f64> {
    Some(get(figures, one, what)? / get(figures, other, what)?)
}

/// The rate over that of the Opteron with all cores at full speed.
macro_rules! of_full {
    ($one:literal) => {
        |f: &Figures| over(f, concat!("opteron/", $one), FULL, "mbps")
    };
}

/// The rate over that of the Xeon with all cores at full speed.
macro_rules! of_xeon {
    ($one:literal) => {
        |f: &Figures| over(f, concat!("xeon/", $one), XEON, "mbps")
    };
}

pub fn claims() -> Vec<Claim> {
    let mut all = slower_cores();
    all.extend(consolidated());
    all.extend(with_filter());
    all
}

fn slower_cores() -> Vec<Claim> {
    use Rule::{AtLeast, AtMost, Near};
    vec![
        claim(
            "figure 4.1, ip",
            "ip at 1300 MHz beats ip at 1900",
            AtLeast(1.005),
            of_full!("1900x1900x1300x1900"),
        ),
        claim("figure 4.1, ip below", "below 1300 it falls, 800 over 1300", AtMost(0.99), |f| {
            over(f, "opteron/1900x1900x800x1900", "opteron/1900x1900x1300x1900", "mbps")
        }),
        claim(
            "figure 4.1, posix",
            "posix loses nothing at 800 MHz",
            AtLeast(0.98),
            of_full!("800x1900x1900x1900"),
        ),
        claim(
            "figure 4.1, driver",
            "the driver loses nothing at 800",
            AtLeast(0.98),
            of_full!("1900x1900x1900x800"),
        ),
        claim(
            "figure 4.1, tcp",
            "tcp bounds the stack: at 800 it costs more than any other",
            AtMost(0.99),
            |f| {
                let others = ["800x1900x1900x1900", "1900x1900x800x1900", "1900x1900x1900x800"];
                let least = others.map(|name| get(f, &format!("opteron/{name}"), "mbps"));
                let least = least.into_iter().collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::min)?;
                Some(get(f, "opteron/1900x800x1900x1900", "mbps")? / least)
            },
        ),
        claim("figure 4.2, ip idle", "ip idles less at 1300 than at 1900", AtLeast(1.05), |f| {
            over(f, "opteron/1900x1900x1300x1900", FULL, "ip")
        }),
        claim("figure 4.2, tcp idle", "and tcp, too", AtLeast(1.01), |f| {
            over(f, "opteron/1900x1900x1300x1900", FULL, "tcp")
        }),
        claim("figure 4.2, driver", "the driver is always busy, %", AtLeast(99.0), |f| {
            Some(get(f, FULL, "driver")?.min(get(f, "opteron/1900x1900x1300x1900", "driver")?))
        }),
        claim(
            "figure 4.3, mixed",
            "800x1900x1300x800 has the full throughput",
            AtLeast(0.98),
            of_full!("800x1900x1300x800"),
        ),
        claim("figure 4.3, all 800", "all at 800 MHz, Mb/s", Near(3300.0), |f| {
            get(f, "opteron/800x800x800x800", "mbps")
        }),
        claim(
            "section 4.2, polling",
            "longer polling does what slowing does",
            AtLeast(1.005),
            of_full!("long polls"),
        ),
        claim("section 4.2, polling costs", "at a cost in power", AtLeast(1.01), |f| {
            over(f, "opteron/long polls", "opteron/1900x1900x1300x1900", "watts")
        }),
    ]
}

fn consolidated() -> Vec<Claim> {
    use Rule::{AtLeast, AtMost, Near};
    vec![
        claim(
            "figure 4.4, posix",
            "posix may share a core for free",
            AtLeast(0.98),
            of_full!("posix, shared"),
        ),
        claim("figure 4.4, driver", "sharing the driver's core costs most", AtMost(1.0), |f| {
            let with = ["ip+driver", "tcp+driver", "tcp+ip+driver"];
            let rate = |name: &str| get(f, &format!("opteron/{name}"), "mbps");
            let least = with.map(rate).into_iter().collect::<Option<Vec<f64>>>()?;
            Some(least.into_iter().reduce(f64::min)? / rate("tcp+ip")?.min(rate("ip, shared")?))
        }),
        claim("figure 4.4, 1 Gb/s", "and still gives, Mb/s", Near(1000.0), |f| {
            let all = ["ip+driver", "tcp+driver", "tcp+ip+driver"];
            let rates = all.map(|name| get(f, &format!("opteron/{name}"), "mbps"));
            rates.into_iter().collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::min)
        }),
        claim(
            "section 4.3, stalls",
            "all on one core stall through congestion control",
            AtMost(0.1),
            of_full!("posix+tcp+ip+driver"),
        ),
        claim(
            "figure 4.5, mixed",
            "posix at 800 on a shared core, ip 1300, driver 800: full throughput",
            AtLeast(0.98),
            of_full!("posix 800, shared; ip 1300, driver 800"),
        ),
    ]
}

fn with_filter() -> Vec<Claim> {
    use Rule::{AtLeast, AtMost, Between, Near};
    vec![
        claim(
            "figure 4.6, ip",
            "with the filter ip is the bottleneck, its share over the next",
            AtLeast(1.0),
            |f| {
                let others = ["posix", "tcp", "filter"].map(|server| get(f, XEON, server));
                let next = others.into_iter().collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)?;
                Some(get(f, XEON, "ip")? / next)
            },
        ),
        claim(
            "figure 4.6, slow ip",
            "slowing ip costs throughput",
            AtMost(0.97),
            of_xeon!("2267x2267x2267x1600x2267"),
        ),
        claim("figure 4.6, one other", "slowing any one other is free, the least", AtLeast(0.98), |f| {
            let all = [
                "1600x2267x2267x2267x2267",
                "2267x1600x2267x2267x2267",
                "2267x2267x1600x2267x2267",
                "2267x2267x2267x2267x1600",
            ];
            let of = |name: &str| over(f, &format!("xeon/{name}"), XEON, "mbps");
            all.map(of).into_iter().collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::min)
        }),
        claim("figure 4.7, all others", "slowing all others is not", AtMost(0.96), |f| {
            over(f, SLOW, XEON, "mbps")
        }),
        claim(
            "figure 4.7, tcp",
            "speeding up tcp mends it",
            AtLeast(0.98),
            of_xeon!("1600x2267x1600x2267x1600"),
        ),
        claim(
            "figure 4.7, filter",
            "speeding up the filter mends it",
            AtLeast(0.98),
            of_xeon!("1600x1600x2267x2267x1600"),
        ),
        claim("figure 4.7, boost", "boosting ip by 266 MHz brings some", AtLeast(1.01), |f| {
            over(f, "xeon/boosted", SLOW, "mbps")
        }),
        claim("figure 4.7, boosted", "with ip boosted, Mb/s", Near(3350.0), |f| {
            get(f, "xeon/boosted", "mbps")
        }),
        claim(
            "figure 4.8, threads",
            "four threads of two cores equal four cores",
            Between(0.97, 1.03),
            of_xeon!("threads"),
        ),
        claim(
            "figure 4.8, no threads",
            "without threads sharing a core loses",
            AtMost(0.9),
            of_xeon!("tcp+ip"),
        ),
    ]
}
