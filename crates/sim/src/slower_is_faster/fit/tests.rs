use super::*;

#[test]
fn the_fit_reaches_its_numbers() {
    let calibration = Calibration::e5520().unwrap();
    let fitted = fit(&calibration, 1).unwrap();
    let bench = Bench::new(&fitted, "newtos", Ablation::default(), 1).unwrap();
    let (slow, fast) = (bench.run(Sharing::Cores, 1600, 1600), bench.run(Sharing::Cores, 2267, 2267));
    let ours = [slow.kbps / 1000, fast.kbps / 1000, slow.busy_ppm[Server::Tcp as usize]];
    for (ours, target) in ours.into_iter().zip(TARGETS) {
        assert!(ours.abs_diff(target) * 100 <= target * 6, "{ours} for {target}");
    }
}

#[test]
fn a_draw_comes_nearer_from_where_another_fit_ended() {
    let calibration = Calibration::e5520().unwrap();
    for seed in [1001, 1002] {
        let drawn = calibration.draw(seed);
        let found = fit_draw(&drawn, &calibration, seed).unwrap();
        let (before, after) = (error(&drawn, seed).unwrap(), error(&found, seed).unwrap());
        assert!(after <= NEAR || after < before, "{before} {after}");
        for (table, name) in PARAMETERS {
            let parameter = found.parameter(table, name).unwrap();
            assert!(parameter.check().is_ok(), "{table}.{name} = {}", parameter.value);
        }
    }
}

#[test]
fn three_equations_are_solved_unless_they_depend_on_each_other() {
    let of = [[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [1.0, 0.0, 1.0]];
    assert_eq!(solved(&of, [2.0, 4.0, 3.0]), Some([1.0, 1.0, 2.0]));
    assert_eq!(solved(&[[1.0; 3]; 3], [1.0; 3]), None);
}
