//! Where an interface's address comes from: what `--address` takes.

use eft_autoconf::method::Method;
use eft_base::Cidr;
use std::str::FromStr;

/// Stands for all methods.
const ALL: &str = "auto";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Given(Cidr),
    Learnt(Vec<Method>),
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Source, String> {
        if text == ALL {
            return Ok(Source::Learnt(Method::ALL.to_vec()));
        }
        match text.parse() {
            Ok(method) => Ok(Source::Learnt(vec![method])),
            Err(_) => text.parse().map(Source::Given).map_err(|why| match text.contains(['.', ':', '/']) {
                true => format!("{why}"),
                false => {
                    let names = Method::ALL.map(Method::name).join(", ");
                    format!("it is neither an address with its prefix length nor one of {names}, {ALL}")
                }
            }),
        }
    }
}

/// The addresses among these, and the methods, each once.
pub fn split(sources: &[Source]) -> (Vec<Cidr>, Vec<Method>) {
    let (mut given, mut methods) = (Vec::new(), Vec::new());
    for source in sources {
        match source {
            Source::Given(cidr) => given.push(*cidr),
            Source::Learnt(more) => {
                methods.extend(more.iter().filter(|m| !methods.contains(*m)).copied().collect::<Vec<_>>());
            }
        }
    }
    (given, methods)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_given_or_learnt() {
        let parse = |text: &str| text.parse::<Source>();
        assert_eq!(parse("10.0.5.2/24"), Ok(Source::Given("10.0.5.2/24".parse().unwrap())));
        assert_eq!(parse("slaac"), Ok(Source::Learnt(vec![Method::Slaac])));
        let all = ["auto", "slaac", "fd05::2/64"].map(|text| parse(text).unwrap());
        assert_eq!(split(&all), (vec!["fd05::2/64".parse().unwrap()], Method::ALL.to_vec()));
        for (bad, says) in [("slac", "one of slaac"), ("", "one of slaac"), ("10.0.5.2", "PREFIX")] {
            let said = parse(bad).unwrap_err();
            assert!(said.contains(says) && !said.contains('\n'), "{bad}: {said}");
        }
    }
}
