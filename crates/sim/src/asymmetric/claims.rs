//! What the paper claims of named figures.
//!
//! It knows figures by their names only, and shares no code with what made them.

use crate::judge::{Claim, Figures, Rule, claim, fitted};

fn mix(figures: &Figures, mix: &str, way: &str, key: &str) -> Option<f64> {
    figures.get(&format!("mix/{mix}/{way}/{key}")).copied()
}

const SINGLE: [&str; 4] = ["4H-4M-4L", "2H-6M-4L", "6H-2M-4L", "8M-4L"];
const MULTI: [&str; 4] = ["1H-1M-1L", "2H-1M", "1M-2L", "1H-1L"];
const OVER: [&str; 4] = ["1H-3M-2L", "2H-2M-2L", "2H-1M-1L", "4H-2L"];

fn mean_of(figures: &Figures, mixes: &[&str], way: &str) -> Option<f64> {
    let all: Option<Vec<f64>> = mixes.iter().map(|name| mix(figures, name, way, "mean")).collect();
    all.map(|all| all.iter().sum::<f64>() / all.len() as f64)
}

fn most(figures: &Figures, of: impl Fn(&Figures, &str) -> Option<f64>) -> Option<f64> {
    SINGLE.iter().chain(&MULTI).chain(&OVER).filter_map(|name| of(figures, name)).reduce(f64::max)
}

fn scale(figures: &Figures, program: &str, way: &str, fast: usize) -> Option<f64> {
    let at = |count: usize| figures.get(&format!("scale/{program}/{way}/{count}/vm0")).copied();
    Some(at(fast)? / at(0)?)
}

/// The gain of eight fast cores of twelve, relative to the gain of all-fast.
fn scaled(figures: &Figures, program: &str, way: &str) -> Option<f64> {
    Some((scale(figures, program, way, 8)? - 1.0) / (scale(figures, program, way, 12)? - 1.0))
}

fn least_scaled(figures: &Figures, way: &str) -> Option<f64> {
    ["blackscholes", "freqmine", "x264", "swaptions"]
        .iter()
        .map(|p| scaled(figures, p, way))
        .collect::<Option<Vec<f64>>>()?
        .into_iter()
        .reduce(f64::min)
}

fn die_ratio(figures: &Figures, name: &str) -> Option<f64> {
    Some(mix(figures, name, "amp-vcpu", "die-moves")? / mix(figures, name, "amp-vm", "die-moves")?)
}

pub fn claims() -> Vec<Claim> {
    use Rule::{AtLeast, AtMost, Between, Near};
    let mut all = vec![
        claim("figure 2, from fast", "predicted and measured speed-ups correlate", AtLeast(0.8), |f| {
            f.get("fig2/correlation-fast").copied()
        }),
        claim("figure 2, from slow", "also when estimated on slow cores", AtLeast(0.8), |f| {
            f.get("fig2/correlation-slow").copied()
        }),
        claim(
            "figure 4, throughput",
            "maximum throughput is 1.5 whatever the second VM",
            Between(1.5, 1.5),
            |f| f.get("fig4/max/1/throughput").copied(),
        ),
        claim("figure 4, at 2", "the same at efficiency 2", Between(1.5, 1.5), |f| {
            f.get("fig4/max/2/throughput").copied()
        }),
        claim("figure 4, fair", "100% fair at efficiency 1 loses 16.7%", Between(16.6, 16.7), |f| {
            Some((1.0 - f.get("fig4/fair/1/throughput")? / 1.5) * 100.0)
        }),
        claim("figure 4, slowdown", "largest slowdown at efficiency 2 is 33%", Between(33.3, 33.4), |f| {
            f.get("fig4/max/2/slowdown").map(|s| s * 100.0)
        }),
        fitted("figure 7, 8M-4L bound", "all fast gains 17%", Near(1.17), |f| {
            mix(f, "8M-4L", "all-fast", "mean")
        }),
        fitted("figure 7, 8M-4L", "amp-vm gains less than 1%", AtMost(1.01), |f| {
            mix(f, "8M-4L", "amp-vm", "mean")
        }),
        claim("figure 7, 8M-4L floor", "and is as high as amp-fair", AtLeast(0.99), |f| {
            mix(f, "8M-4L", "amp-vm", "mean")
        }),
        claim("figure 7, high of 4H-4M-4L", "close to all-fast", AtLeast(0.9), |f| {
            Some(mix(f, "4H-4M-4L", "amp-vm", "high")? / mix(f, "4H-4M-4L", "all-fast", "high")?)
        }),
        claim("figure 7, high of 2H-6M-4L", "close to all-fast", AtLeast(0.9), |f| {
            Some(mix(f, "2H-6M-4L", "amp-vm", "high")? / mix(f, "2H-6M-4L", "all-fast", "high")?)
        }),
        claim("figure 7, high of 6H-2M-4L", "farther from it, with six for four cores", AtMost(0.9), |f| {
            Some(mix(f, "6H-2M-4L", "amp-vm", "high")? / mix(f, "6H-2M-4L", "all-fast", "high")?)
        }),
        claim("figure 7, low", "low VMs lose slightly", Between(0.9, 1.0), |f| {
            mix(f, "4H-4M-4L", "amp-vm", "low")
        }),
        claim("figure 7, credit", "credit is below fair", AtMost(1.0), |f| mean_of(f, &SINGLE, "credit")),
        fitted("figure 8, freqmine", "40 to 45% in 1H-1M-1L", Between(1.4, 1.45), |f| {
            mix(f, "1H-1M-1L", "amp-vm", "vm0")
        }),
        fitted("figure 8, swaptions", "40 to 45% in 2H-1M", Between(1.4, 1.45), |f| {
            mix(f, "2H-1M", "amp-vm", "vm1")
        }),
        fitted("figure 8, pmake", "20% in 1M-2L", Near(1.2), |f| mix(f, "1M-2L", "amp-vm", "vm0")),
        claim("figure 8, preference", "swaptions is preferred to freqmine", AtLeast(0.1), |f| {
            Some(mix(f, "2H-1M", "amp-vm", "vm1")? - mix(f, "2H-1M", "amp-vm", "vm0")?)
        }),
        claim("figure 8, credit", "credit is below fair", AtMost(1.0), |f| mean_of(f, &MULTI, "credit")),
        claim("figure 10, mean", "amp-vm gains about 10% over fair", Near(1.10), |f| {
            mean_of(f, &OVER, "amp-vm")
        }),
        claim("figure 10, high of 1H-3M-2L", "nearly all-fast", AtLeast(0.9), |f| {
            Some(mix(f, "1H-3M-2L", "amp-vm", "high")? / mix(f, "1H-3M-2L", "all-fast", "high")?)
        }),
        claim("figure 10, low of 1H-3M-2L", "low VMs gain, too", AtLeast(1.0), |f| {
            mix(f, "1H-3M-2L", "amp-vm", "low")
        }),
        claim("figure 10, credit", "credit catches up with fair when overcommitted", AtLeast(0.02), |f| {
            Some(mean_of(f, &OVER, "credit")? - mean_of(f, &MULTI, "credit")?)
        }),
        claim("figure 10, amp-vcpu", "amp-vcpu loses to amp-vm in 1H-3M-2L", AtLeast(0.01), |f| {
            Some(mix(f, "1H-3M-2L", "amp-vm", "mean")? - mix(f, "1H-3M-2L", "amp-vcpu", "mean")?)
        }),
        claim("section 4.2, over credit", "up to 40%", Near(1.40), |f| {
            most(f, |f, m| Some(mix(f, m, "amp-vm", "mean")? / mix(f, m, "credit", "mean")?))
        }),
        claim("section 4.2, over fair", "up to 28%", Near(1.28), |f| {
            most(f, |f, m| mix(f, m, "amp-vm", "mean"))
        }),
        claim("migrations, 1H-3M-2L", "5.6 times more across caches under amp-vcpu", Near(5.6), |f| {
            die_ratio(f, "1H-3M-2L")
        }),
        claim("migrations, 2H-2M-2L", "1.1 to 1.2 times", Near(1.15), |f| die_ratio(f, "2H-2M-2L")),
        claim("migrations, 2H-1M-1L", "1.1 to 1.2 times", Near(1.15), |f| die_ratio(f, "2H-1M-1L")),
        claim("migrations, 4H-2L", "1.1 to 1.2 times", Near(1.15), |f| die_ratio(f, "4H-2L")),
        claim(
            "figure 6, static programs",
            "pinned, they gain only when all cores are fast",
            AtMost(0.35),
            |f| {
                ["blackscholes", "freqmine", "x264", "swaptions"]
                    .iter()
                    .map(|p| scaled(f, p, "pinned"))
                    .collect::<Option<Vec<f64>>>()?
                    .into_iter()
                    .reduce(f64::max)
            },
        ),
        claim("figure 6, pmake", "a pool of tasks scales", AtLeast(0.5), |f| scaled(f, "pmake", "pinned")),
        claim("figure 12, credit", "credit scales as badly as pinned", AtMost(0.35), |f| {
            least_scaled(f, "credit")
        }),
        claim("figure 12, amp-fair", "amp-fair scales", AtLeast(0.45), |f| least_scaled(f, "amp-fair")),
        claim("figure 12, amp-vm", "amp-vm scales", AtLeast(0.45), |f| least_scaled(f, "amp-vm")),
        claim("figure 12, amp-vcpu", "amp-vcpu scales", AtLeast(0.45), |f| least_scaled(f, "amp-vcpu")),
        claim(
            "figure 14, all fast",
            "amp-vm and amp-fair are alike with twelve fast cores",
            Between(0.95, 1.05),
            |f| Some(f.get("scales/1H-1M-1L/amp-vm/12/vm0")? / f.get("scales/1H-1M-1L/amp-fair/12/vm0")?),
        ),
        claim("figure 14, four fast", "with four freqmine profits", AtLeast(1.2), |f| {
            Some(f.get("scales/1H-1M-1L/amp-vm/4/vm0")? / f.get("scales/1H-1M-1L/amp-fair/4/vm0")?)
        }),
        claim("figure 14, ten fast", "with ten hardly", AtMost(1.15), |f| {
            Some(f.get("scales/1H-1M-1L/amp-vm/10/vm0")? / f.get("scales/1H-1M-1L/amp-fair/10/vm0")?)
        }),
    ];
    all.extend(tables());
    all
}

/// Tables 2 and 3 and Figure 11: held out.
fn tables() -> Vec<Claim> {
    use Rule::{AtLeast, AtMost, Near};
    macro_rules! slowdown {
        ($id:literal, $mix:literal, $way:literal, $paper:literal) => {
            // A figure of the paper that rounds to zero allows no ratio: below half a percent counts as agreement.
            claim(
                $id,
                "largest slowdown against fair, %",
                if $paper < 0.5 { AtMost(0.5) } else { Near($paper) },
                |f| mix(f, $mix, $way, "slowdown"),
            )
        };
    }
    vec![
        slowdown!("table 2, 4H-4M-4L", "4H-4M-4L", "amp-vm", 7.38),
        slowdown!("table 2, 2H-6M-4L", "2H-6M-4L", "amp-vm", 10.0),
        slowdown!("table 2, 6H-2M-4L", "6H-2M-4L", "amp-vm", 7.75),
        slowdown!("table 2, 8M-4L", "8M-4L", "amp-vm", 13.89),
        slowdown!("table 2, 1H-1M-1L", "1H-1M-1L", "amp-vm", 0.0),
        slowdown!("table 2, 2H-1M", "2H-1M", "amp-vm", 7.84),
        slowdown!("table 2, 1M-2L", "1M-2L", "amp-vm", 0.27),
        slowdown!("table 2, 1H-1L", "1H-1L", "amp-vm", 0.06),
        slowdown!("table 2, 1H-3M-2L", "1H-3M-2L", "amp-vm", 1.23),
        slowdown!("table 2, 2H-2M-2L", "2H-2M-2L", "amp-vm", 0.0),
        slowdown!("table 2, 4H-2L", "4H-2L", "amp-vm", 0.0),
        slowdown!("table 2, 2H-1M-1L", "2H-1M-1L", "amp-vm", 2.85),
        slowdown!("table 2, 1H-3M-2L amp-vcpu", "1H-3M-2L", "amp-vcpu", 4.19),
        slowdown!("table 2, 2H-1M amp-vcpu", "2H-1M", "amp-vcpu", 6.43),
        slowdown!("table 3, 4H-4M-4L 20%", "4H-4M-4L", "amp-fair:20", 6.12),
        slowdown!("table 3, 4H-4M-4L 40%", "4H-4M-4L", "amp-fair:40", 4.82),
        slowdown!("table 3, 4H-4M-4L 60%", "4H-4M-4L", "amp-fair:60", 4.16),
        slowdown!("table 3, 4H-4M-4L 80%", "4H-4M-4L", "amp-fair:80", 2.81),
        slowdown!("table 3, 8M-4L 20%", "8M-4L", "amp-fair:20", 11.93),
        slowdown!("table 3, 8M-4L 40%", "8M-4L", "amp-fair:40", 10.4),
        slowdown!("table 3, 8M-4L 60%", "8M-4L", "amp-fair:60", 9.36),
        slowdown!("table 3, 8M-4L 80%", "8M-4L", "amp-fair:80", 6.19),
        slowdown!("table 3, 2H-1M 20%", "2H-1M", "amp-fair:20", 6.82),
        slowdown!("table 3, 2H-1M 40%", "2H-1M", "amp-fair:40", 6.79),
        slowdown!("table 3, 2H-1M 60%", "2H-1M", "amp-fair:60", 4.97),
        slowdown!("table 3, 2H-1M 80%", "2H-1M", "amp-fair:80", 3.2),
        slowdown!("table 3, 2H-1M-1L 20%", "2H-1M-1L", "amp-fair:20", 2.03),
        slowdown!("table 3, 2H-1M-1L 40%", "2H-1M-1L", "amp-fair:40", 2.59),
        slowdown!("table 3, 2H-1M-1L 60%", "2H-1M-1L", "amp-fair:60", 1.41),
        slowdown!("table 3, 2H-1M-1L 80%", "2H-1M-1L", "amp-fair:80", 0.92),
        claim("table 3, trend", "the slowdown of 2H-1M falls from amp-vm to 80%", AtLeast(1.0), |f| {
            Some(mix(f, "2H-1M", "amp-vm", "slowdown")? - mix(f, "2H-1M", "amp-fair:80", "slowdown")?)
        }),
        claim("figure 11, mean", "the mean of 4H-4M-4L falls slightly with R", AtLeast(0.0), |f| {
            Some(mix(f, "4H-4M-4L", "amp-vm", "mean")? - mix(f, "4H-4M-4L", "amp-fair:80", "mean")?)
        }),
        claim("figure 11, most", "the largest speed-up falls faster than the mean", AtLeast(0.0), |f| {
            let fall =
                |key| Some(mix(f, "4H-4M-4L", "amp-vm", key)? - mix(f, "4H-4M-4L", "amp-fair:80", key)?);
            Some(fall("most")? - fall("mean")?)
        }),
    ]
}

/// Figures of a model in which all policies are alike: speed-ups of 1, no slowdown, the same migrations.
pub fn constant(figures: &Figures) -> Figures {
    let flat = |name: &String| match () {
        () if name.ends_with("/slowdown") || name.contains("correlation") => 0.0,
        () => 1.0,
    };
    figures.keys().map(|name| (name.clone(), flat(name))).collect()
}

#[cfg(test)]
mod tests;
