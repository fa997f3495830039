use super::*;

fn capacities(figures: &[u32]) -> Vec<Evidence> {
    figures.iter().map(|capacity| Evidence { capacity: Some(*capacity), ..Evidence::default() }).collect()
}

#[test]
fn three_arm_clusters_are_little_medium_and_big() {
    let (classes, from) = classify(&capacities(&[250, 250, 620, 1024]));
    assert_eq!(classes, [CoreClass::Little, CoreClass::Little, CoreClass::Medium, CoreClass::Big]);
    assert_eq!(from.as_deref(), Some("cpu_capacity"));
}

#[test]
fn equal_and_nearly_equal_cores_are_equal() {
    assert_eq!(classify(&capacities(&[1024, 1024])).0, [CoreClass::Equal; 2]);
    assert_eq!(classify(&capacities(&[1024, 980])).0, [CoreClass::Equal; 2]);
    assert_eq!(classify(&[]).0, []);
}

#[test]
fn the_pmu_outranks_the_frequency_and_an_offline_core_stays_unnamed() {
    let core = |kind: Option<&str>| Evidence {
        core_type: kind.map(Into::into),
        fastest: Some(KiloHertz(4_000_000)),
        ..Evidence::default()
    };
    let (classes, _) = classify(&[core(Some("cpu_core")), core(Some("cpu_atom")), core(None)]);
    assert_eq!(classes, [CoreClass::Big, CoreClass::Little, CoreClass::Equal]);
}

#[test]
fn frequency_alone_decides_when_far_apart() {
    let core = |khz| Evidence { fastest: Some(KiloHertz(khz)), ..Evidence::default() };
    assert_eq!(classify(&[core(1_400_000), core(2_000_000)]).0, [CoreClass::Little, CoreClass::Big]);
    assert_eq!(classify(&[core(4_700_000), core(4_850_000)]).0, [CoreClass::Equal; 2]);
}
