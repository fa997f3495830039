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
