use super::*;

#[test]
fn the_linkers_words_are_understood() {
    let said = "ERROR: ld.so: object '/x/libeft.so' from LD_PRELOAD cannot be preloaded (file too short): ignored.\n";
    assert_eq!(rejected(said, Path::new("/x/libeft.so")).as_deref(), Some("file too short"));
    assert_eq!(rejected(said, Path::new("/y/libeft.so")), None);
    let loaded = "\tlinux-vdso.so.1 (0x00007ffe)\n\tlibasan.so.8 => /lib/libasan.so.8 (0x00007f)\n";
    assert_eq!(sanitizer(loaded), Some(PathBuf::from("/lib/libasan.so.8")));
    assert_eq!(sanitizer("\tlibc.so.6 => /lib/libc.so.6 (0x00007f)\n"), None);
}
