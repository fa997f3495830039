//! Tables of judged claims, in columns, and whether a report is good enough.

use anyhow::{Result, bail};
use eft_sim::judge::{Claim, Figures, Verdict};
use serde_json::{Value, json};

/// A claim, and what one column makes of it.
pub struct Judged {
    pub claim: Claim,
    pub ours: Option<f64>,
    pub verdict: Verdict,
    pub share: f64,
}

impl Judged {
    pub fn new(claim: Claim, nominal: &Figures, draws: &[Figures]) -> Self {
        let (verdict, share) = claim.verdict(nominal, draws);
        Self { ours: (claim.ours)(nominal), verdict, share, claim }
    }
}

pub struct Column<'a> {
    pub name: &'static str,
    pub judged: &'a [Judged],
    pub reason: fn(&str) -> Option<&'static str>,
}

pub struct Totals {
    /// Claims that models pass that know nothing.
    pub constant: usize,
    pub linear: usize,
    pub draws: u64,
}

fn count(judged: &[Judged], verdict: Verdict) -> usize {
    judged.iter().filter(|j| !j.claim.fitted && j.verdict == verdict).count()
}

/// Orders and numbers held out: reproduced, and all.
fn share(judged: &[Judged], numbers: bool) -> (usize, usize) {
    let of = judged.iter().filter(|j| !j.claim.fitted && j.claim.rule.is_number() == numbers);
    (of.clone().filter(|j| j.verdict == Verdict::Reproduced).count(), of.count())
}

fn reason(column: &Column, judged: &Judged) -> Option<&'static str> {
    if judged.verdict == Verdict::Reproduced { None } else { (column.reason)(judged.claim.id) }
}

pub fn text(columns: &[Column], totals: &Totals) -> String {
    let mut head: Vec<String> = ["CLAIM", "SAYS", "PAPER"].map(String::from).into();
    for column in columns {
        head.extend([column.name.to_uppercase(), "OFF".into(), "DRAWS".into(), "VERDICT".into()]);
    }
    let mut rows = vec![head];
    for (i, first) in columns[0].judged.iter().enumerate() {
        let mut row = vec![first.claim.id.into(), first.claim.says.into(), first.claim.rule.paper()];
        for judged in columns.iter().map(|column| &column.judged[i]) {
            row.extend([
                judged.ours.map_or("-".into(), |ours| format!("{ours:.3}")),
                judged.ours.map_or("-".into(), |ours| format!("{:+.0}%", judged.claim.rule.deviation(ours))),
                format!("{:.0}%", judged.share * 100.0),
                if judged.claim.fitted { "(fit point)".into() } else { judged.verdict.name().into() },
            ]);
        }
        rows.push(row);
    }
    let mut text = eft_text::columns(&rows);
    for column in columns {
        for (judged, why) in column.judged.iter().filter_map(|j| Some((j, reason(column, j)?))) {
            text += &format!("{}: {why}\n", judged.claim.id);
        }
    }
    for Column { name, judged, .. } in columns {
        let ((orders, of_orders), (numbers, of_numbers)) = (share(judged, false), share(judged, true));
        text += &format!(
            "{name}: {} reproduced, {} fragile, {} missed of what was held out; orders {orders} of {of_orders}, numbers {numbers} of {of_numbers}\n",
            count(judged, Verdict::Reproduced),
            count(judged, Verdict::Fragile),
            count(judged, Verdict::Missed),
        );
    }
    text + &format!(
        "of all {} claims a constant model passes {}, a linear one {}; {} draws; two runs are identical\n",
        columns[0].judged.len(),
        totals.constant,
        totals.linear,
        totals.draws,
    )
}

pub fn json(columns: &[Column], totals: &Totals, figures: Value) -> Result<String> {
    let of = |column: &Column, j: &Judged| {
        json!({ "ours": j.ours, "deviation_percent": j.ours.map(|o| j.claim.rule.deviation(o)),
                "verdict": j.verdict.name(), "share_of_draws": j.share, "reason": reason(column, j) })
    };
    let claim = |(i, first): (usize, &Judged)| {
        let all = columns.iter().map(|c| (c.name.to_string(), of(c, &c.judged[i])));
        let mut claim: serde_json::Map<String, Value> = all.collect();
        claim.insert("claim".into(), first.claim.id.into());
        claim.insert("says".into(), first.claim.says.into());
        claim.insert("paper".into(), first.claim.rule.paper().into());
        claim.insert("fit_point".into(), first.claim.fitted.into());
        Value::Object(claim)
    };
    let claims: Vec<Value> = columns[0].judged.iter().enumerate().map(claim).collect();
    let all = json!({ "claims": claims, "constant_model_passes": totals.constant,
                      "linear_model_passes": totals.linear, "draws": totals.draws, "figures": figures });
    Ok(serde_json::to_string_pretty(&all)? + "\n")
}

/// Nine in ten of the held-out orders and six in ten of the held-out numbers must be reproduced.
pub fn check(judged: &[Judged]) -> Result<()> {
    let ((orders, of_orders), (numbers, of_numbers)) = (share(judged, false), share(judged, true));
    if orders * 10 >= of_orders * 9 && numbers * 10 >= of_numbers * 6 {
        return Ok(());
    }
    bail!(
        "of the claims held out {orders} of {of_orders} orders (aim 90%) and {numbers} of {of_numbers} numbers (aim 60%) are reproduced"
    )
}
